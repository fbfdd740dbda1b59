"""Hovers of random programs and of operators hold before torch, and the judge notices one that does not."""

from __future__ import annotations

import pytest

from gradsight.analysis import Analyser
from gradsight.model import Source
from gradsight.model.card import CallCard, Card
from gradsight.ops.table import shipped
from gradsight.session.hovering import _facts_of
from gradsight_dev.fuzz_hovers import HoverTally, campaign, examine, of_operators
from gradsight_dev.hover_calls import compare_calls, observed_calls

PROGRAM = """import torch
x = torch.rand(3, requires_grad=True)
y = x.exp()
z = x * y
"""


def test_hovers_of_random_programs_hold_before_torch() -> None:
    tally = campaign(7_000_000, 25)
    assert tally.denied == []
    assert tally.names > 1_000
    assert tally.calls > 300


def test_hovers_over_every_operator_with_several_cases_hold_before_torch() -> None:
    tally = of_operators()
    assert tally.denied == []
    assert tally.calls > 250


@pytest.mark.parametrize(
    ("fact", "said"), [("Tensor.zero_", "`self` was not written"), ("Tensor.neg", "the result is kept")]
)
def test_a_hover_about_another_operator_is_denied(fact: str, said: str) -> None:
    """`exp` keeps its result alone: what holds of `zero_` or of a minus does not hold of it."""
    cards: list[Card] = []
    for card in Analyser().cards(Source("a.py", PROGRAM), 1, 4):
        is_exp = isinstance(card, CallCard) and card.fact == "Tensor.exp"
        cards.append(CallCard(card.span, fact, (0,)) if is_exp else card)
    verdict = compare_calls(cards, observed_calls(PROGRAM, "a.py"))
    assert any(said in lie for lie in verdict.lies), verdict.lies


CLAIMS = [
    """
table = torch.ones(2, 4, requires_grad=True) * 2
row = table[0]
nn.functional.relu(row, inplace=True)
size = row.norm()
last = table[1]
nn.ReLU(inplace=True)(last)
more = last.norm()
whole = torch.ones(3, requires_grad=True) * 2
nn.functional.relu(whole, inplace=True)
rest = whole.norm()
""",
    """
w = torch.ones(3, requires_grad=True)
v = torch.ones(3, requires_grad=True)
loss = (w * 2).sum() + (v * v).sum()
[flat] = torch.autograd.grad(loss, [w], create_graph=True)
squared = flat.pow(2)
[steep] = torch.autograd.grad(loss, [v], create_graph=True)
cubed = steep.pow(2)
""",
    """
w = torch.ones(3, requires_grad=True)
y = w * 2
w.data = w.data * 1.5
state = y * w.detach()
state.sum().backward()
""",
    """
inputs = torch.ones(2, 3)
flat = nn.Sequential(nn.Linear(3, 3), nn.Flatten())(inputs)
flat *= 2
rows = nn.Flatten(0)(nn.Linear(3, 3)(inputs))
rows *= 2
one = nn.Flatten(0, 0)(nn.Linear(3, 3)(inputs))
one *= 2
""",
    """
def stream(t, times):
    for _ in range(times):
        yield t
        t.add_(1)
mask = torch.ones(3) * 2
*_, last = stream(mask, 3)
""",
    """
class Cell(nn.Module):
    def forward(self, x):
        y = x * 2
        return y
cell = Cell()
cell.register_full_backward_hook(lambda *given: None)
cell(torch.rand(2, 3, requires_grad=True))
""",
    """
attention = nn.MultiheadAttention(4, 1)
z = torch.rand(2, 3, 4)
z = attention(z, z, z)[0]
out = nn.ReLU(inplace=True)(z)
more = out * 2
""",
    """
w = torch.ones(3, requires_grad=True)
average = w.detach()
w.data = w.data * 2
with torch.no_grad():
    average.mul_(0.9).add_(w, alpha=0.1)
""",
    """
table = torch.ones(3, 3, requires_grad=True) * 2
_, last = table.split([1, 2])
table.relu_()
layer = nn.Linear(3, 3)
def run(x):
    return layer(x)
res = run(table)
both = last + last.clone()
state = run(res)
""",
    """
mean = torch.ones(3, requires_grad=True) * 2
a = torch.normal(mean=mean)
b = torch.normal(mean, 1.0)
c = torch.asarray(obj=mean)
d = torch.asarray(mean, requires_grad=False)
""",
    """
w = torch.rand(3, requires_grad=True)
total = None
for epoch, row in enumerate(torch.randn(55, 3)):
    if (epoch + 1) % 16 == 0:
        total = (w * row).sum() if total is None else total + (w * row).sum()
total.backward()
""",
    """
w = torch.rand(3, 3, requires_grad=True)
part = w * 2
with torch.no_grad():
    flat = part.reshape(-1)
    total = flat * 3
""",
    """
w = torch.randn(4, requires_grad=True)
out = w.clamp(min=0)
q = out[:]
nn.functional.relu(q, inplace=True)
q.mul_(out)
with torch.no_grad():
    out[0] = 1
more = q * 2
""",
    """
net = nn.Linear(4, 4)
with torch.autocast("cpu", dtype=torch.bfloat16):
    y = net(torch.randn(2, 4))
z = net(y.float())
""",
]


@pytest.mark.parametrize("program", CLAIMS)
def test_what_torch_once_denied_is_told_rightly(program: str) -> None:
    tally = HoverTally()
    examine(f"import torch\nfrom torch import nn\n{program}", "a.py", tally, "line ")
    assert tally.denied == []
    assert tally.names > 5


def test_a_hover_over_a_call_under_autocast_says_so() -> None:
    text = "import torch\nwith torch.autocast('cpu'):\n    y = torch.mm(torch.ones(2, 2), torch.ones(2, 2))\n"
    told = [card for card in Analyser().cards(Source("a.py", text), 3, 3) if isinstance(card, CallCard)]
    assert [card.is_cast for card in told if card.fact == "torch.mm"] == [True]
    assert "Under autocast" in _facts_of(shipped(), "torch.mm", told[:1])[0]
