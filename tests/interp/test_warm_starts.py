"""Parameters that are set from others: where training goes on from there, and where it was meant to go through."""

from __future__ import annotations

import pytest

from tests.interp.checking import check
from tests.interp.running import run, safe

STAGES = """
net = nn.ModuleDict({{"small": nn.Linear(2, 2), "big": nn.Linear(2, 4)}})
small, big = net["small"], net["big"]
opt = torch.optim.SGD(net.parameters(), 0.1)
{first}
{start}
for _ in range(2):
    opt.zero_grad()
    before = big.weight.detach().clone()
    big(torch.ones(3, 2)).pow(2).mean().backward()
    opt.step()
    assert not torch.equal(before, big.weight)
"""
FIRST = """
for _ in range(2):
    opt.zero_grad()
    small(torch.ones(3, 2)).pow(2).mean().backward()
    opt.step()
"""
STARTS = [
    "with torch.no_grad(): big.weight[:2] = small.weight",
    "with torch.no_grad(): big.weight[:2].copy_(small.weight)",
    "with torch.no_grad(): big.weight.copy_(torch.cat([small.weight, small.weight]))",
    "with torch.no_grad(): big.weight.copy_(small.weight.repeat(2, 1))",
    "with torch.no_grad(): big.weight.copy_(small.weight.mean(0).expand(4, 2))",
    "with torch.no_grad(): big.weight[2:].add_(small.weight, alpha=0.5)",
    "with torch.no_grad(): big.weight[:2] = 0.5 * small.weight + 0.5 * big.weight[2:]",
    "big.weight.data[:2] = small.weight.data",
    "big.weight.data[:2].copy_(small.weight.detach())",
    "with torch.no_grad(): nn.init.constant_(big.weight, small.weight.mean().item())",
]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("first", ["", FIRST])
def test_a_parameter_may_begin_with_the_values_of_another(start: str, first: str) -> None:
    safe(STAGES.format(first=first, start=start))


def test_every_parameter_may_begin_with_those_of_a_twin() -> None:
    safe("""
        a, b = nn.Linear(2, 2), nn.Linear(2, 2)
        opt = torch.optim.SGD([*a.parameters(), *b.parameters()], 0.1)
        with torch.no_grad():
            for p, q in zip(a.parameters(), b.parameters()):
                p.copy_(q)
        for _ in range(2):
            opt.zero_grad()
            a(torch.ones(3, 2)).pow(2).mean().backward()
            opt.step()
    """)


THROUGH = """
class Hyper(nn.Module):
    def __init__(self):
        super().__init__()
        {learns}
        self.weight = nn.Parameter(torch.ones(2, 2))
    def forward(self, x):
        {through}
        return x @ self.weight
net = Hyper()
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(2):
    opt.zero_grad()
    net(torch.ones(3, 2)).pow(2).mean().backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("learns", "through"),
    [
        ("self.make = nn.Linear(1, 4)", "self.weight.copy_(self.make(torch.ones(1)).view(2, 2))"),
        ("self.base = nn.Parameter(torch.ones(2, 2))", "self.weight.copy_(self.base)"),
        ("self.base = nn.Parameter(torch.ones(2, 2))", "self.weight[:] = self.base * 2"),
    ],
)
def test_a_forward_pass_that_writes_what_it_should_learn_through_is_told(learns: str, through: str) -> None:
    program = THROUGH.format(learns=learns, through=f"with torch.no_grad(): {through}  # GS204")
    check(program)
    run(program + "assert [p.grad is None for p in net.parameters()].count(False) == 1\n")


def test_a_round_that_writes_what_it_should_learn_through_is_told() -> None:
    program = """
make, weight = nn.Linear(1, 4), nn.Parameter(torch.ones(2, 2))
opt = torch.optim.SGD([*make.parameters(), weight], 0.1)
for _ in range(2):
    opt.zero_grad()
    with torch.no_grad():  # GS204
        weight.copy_(make(torch.ones(1)).view(2, 2))
    (torch.ones(3, 2) @ weight).pow(2).mean().backward()
    opt.step()
"""
    check(program)
    run(program + "assert make.weight.grad is None\n")
