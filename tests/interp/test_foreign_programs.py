"""Shapes of single-file programs: updates under a loop's name, gradients assigned by hand, sums of numbers, inverses of flows."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

TRAINING = """
import numpy as np
net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
opt = torch.optim.Adam(net.parameters())
for step in range(100):
    opt.zero_grad()
    loss = net(torch.randn(4, 3)).pow(2).mean()
    loss.backward()
    {before}
    opt.step()
    {after}
"""


@pytest.mark.parametrize(
    "update",
    [
        "p = p.data.clamp(-0.1, 0.1)",
        "p = p.clamp(-0.1, 0.1)",
        "p = torch.clamp(p.detach(), -0.1, 0.1)",
        "p = 0.9 * p",
    ],
)
def test_a_parameter_that_is_only_rebound_in_its_loop_is_reported(update: str) -> None:
    loop = f"for p in net.parameters():\n        {update}  # GS515"
    check(TRAINING.format(before="pass", after=loop))


@pytest.mark.parametrize(
    "body",
    [
        "p.data = p.data.clamp(-0.1, 0.1)",
        "p.data.clamp_(-0.1, 0.1)",
        "p = p.data.clamp(-0.1, 0.1); print(p.norm())",
        "p = p.data.clamp(-0.1, 0.1); total = total + p.norm()",
        "p = p.data; p.mul_(0.99)",
        "p = p.view(-1)",
        "p = p.requires_grad_(True)",
    ],
)
def test_a_parameter_that_is_written_or_read_again_is_fine(body: str) -> None:
    loop = f"total = 0\n    for p in net.parameters():\n        {body}"
    check(TRAINING.format(before="pass", after=loop))


def test_a_gradient_that_is_only_rebound_is_reported() -> None:
    loop = "for p in net.parameters():\n        g = p.grad\n        g = 0.5 * g  # GS515"
    check(TRAINING.format(before=loop, after="pass"))


@pytest.mark.parametrize("kept", ["p.grad = g", "p.grad.copy_(g)", "print(g.norm())"])
def test_a_gradient_that_is_put_back_or_read_is_fine(kept: str) -> None:
    loop = f"for p in net.parameters():\n        g = p.grad\n        g = 0.5 * g\n        {kept}"
    check(TRAINING.format(before=loop, after="pass"))


BY_HAND = """
w = torch.randn(3, 1, requires_grad=True)
v = torch.randn(1, 1, requires_grad=True)
for step in range(5):
    loss = (torch.randn(4, 3) @ w @ v).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        {update}
        v -= 0.1 * v.grad
    {clear}
    v.grad.zero_()
"""


def test_the_gradient_of_a_new_tensor_under_an_old_name_is_none() -> None:
    check(BY_HAND.format(update="w = w - 0.1 * w.grad", clear="w.grad.zero_()  # GS304"))


@pytest.mark.parametrize(
    ("update", "clear"),
    [
        ("w -= 0.1 * w.grad", "w.grad.zero_()"),
        ("w.copy_(w - 0.1 * w.grad)", "w.grad.zero_()"),
        ("w = (w - 0.1 * w.grad).requires_grad_()", "pass"),
        ("w = (w - 0.1 * w.grad).requires_grad_()", "w.grad = None"),
    ],
)
def test_a_leaf_that_stays_or_is_made_one_again_is_fine(update: str, clear: str) -> None:
    check(BY_HAND.format(update=update, clear=clear))


@pytest.mark.parametrize(
    "term",
    [
        "np.mean((out - 1).detach().numpy() ** 2)",
        "1e-4 * np.sum(out.detach().numpy())",
        "np.linalg.norm(out.detach().numpy())",
    ],
)
def test_a_number_that_numpy_makes_of_an_array_is_a_term_that_trains_nothing(term: str) -> None:
    program = TRAINING.replace("loss = net(torch.randn(4, 3)).pow(2).mean()", "out = net(torch.randn(4, 3))")
    program = program.replace(
        "loss.backward()", f"loss = out.pow(2).mean() + {term}  # GS202\n    loss.backward()"
    )
    check(program.format(before="pass", after="pass"))


@pytest.mark.parametrize(
    "term", ["np.mean([1.0, 2.0])", "np.mean(np.ones(3))", "0 * np.sum(torch.ones(3).numpy())"]
)
def test_numbers_of_numpy_that_come_from_no_graph_are_fine(term: str) -> None:
    program = TRAINING.replace("loss = net(torch.randn(4, 3)).pow(2).mean()", "out = net(torch.randn(4, 3))")
    program = program.replace("loss.backward()", f"loss = out.pow(2).mean() + {term}\n    loss.backward()")
    check(program.format(before="pass", after="pass"))


CLEARED_BY_HAND = """
from helpers import fresh
w = torch.randn(3, 1, requires_grad=True)
v = torch.randn(3, 1, requires_grad=True)
def reset():
    for p in [w, v]:
        if p.grad is not None:
            {reset}
first, second = torch.optim.Adam([w]), torch.optim.Adam([v])
for step in range(5):
    x = torch.randn(4, 3)
    (x @ w * (x @ v)).mean().backward(){said}
    first.step()
    reset()
    (x @ w * (x @ v)).pow(2).mean().backward()
    second.step()
    reset()
"""


@pytest.mark.parametrize(
    "reset",
    [
        "p.grad = p.grad.data.new().resize_as_(p.grad.data).zero_()",
        "p.grad = torch.zeros_like(p)",
        "p.grad = fresh(p)",
        "p.grad = None",
    ],
)
def test_gradients_that_are_replaced_by_hand_are_cleared(reset: str) -> None:
    check(CLEARED_BY_HAND.format(reset=reset, said=""))


RUNNING = """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    average = None
    for step in range(100):
        opt.zero_grad()
        loss = net(torch.randn(4, 3)).pow(2).mean()
        loss.backward()
        opt.step()
        if average is None:
            average = {first}
        else:
            average = {then}
"""


def test_a_running_average_that_begins_with_the_first_loss_keeps_the_graphs_of_all() -> None:
    check(RUNNING.format(first="loss", then="0.9 * average + 0.1 * loss  # GS404"))


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("loss.item()", "0.9 * average + 0.1 * loss.item()"),
        ("loss.detach()", "0.9 * average + 0.1 * loss.detach()"),
        ("loss", "(0.9 * average + 0.1 * loss).detach()"),
    ],
)
def test_a_running_average_of_numbers_is_fine(first: str, then: str) -> None:
    check(RUNNING.format(first=first, then=then))


FLOW = """
class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.randn(1, 2))
    def forward(self, x):
        return x * torch.exp(self.s), self.s.sum()
    def backward(self, z):{said}
        return z * torch.exp(-self.s), -self.s.sum()
class Flow(nn.Module):
    def __init__(self, flows):
        super().__init__()
        self.flows = nn.ModuleList(flows)
    def forward(self, x):
        total = torch.zeros(x.shape[0])
        for flow in self.flows:
            x, change = flow(x)
            total = total + change
        return x, total
    {inverse}
flow = Flow([Scale(), Scale()])
opt = torch.optim.Adam(flow.parameters())
for step in range(5):
    opt.zero_grad()
    z, change = flow(torch.randn(8, 2))
    (z.pow(2).sum(1) - change).mean().backward()
    opt.step()
"""


def test_the_inverse_of_a_flow_that_another_module_calls_is_no_gradient() -> None:
    inverse = "def backward(self, z):\n        for flow in self.flows:\n            z, change = flow.backward(z)\n        return z"
    check(FLOW.format(said="", inverse=inverse))


def test_a_backward_that_nothing_calls_is_still_reported() -> None:
    check(FLOW.format(said="  # GS707", inverse="pass"))


ACTOR = """
from elsewhere import rewards, scale
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.act, self.value = nn.Linear(3, 8), nn.Linear(8, 2), nn.Linear(8, 1)
    def forward(self, x):
        x = F.relu(self.body(x))
        return F.softmax(self.act(x), -1), self.value(x)
policy = Policy()
opt = torch.optim.Adam(policy.parameters())
for episode in range(5):
    saved, acting, judging = [], [], []
    for step in range(4):
        chances, value = policy(torch.randn(3))
        choice = torch.distributions.Categorical(chances)
        saved.append((choice.log_prob(choice.sample()), value))
    returns = torch.tensor(rewards)
    returns = (returns - returns.mean()) / (returns.std() + scale)
    for (chance, value), gain in zip(saved, returns):
        reward = gain - {baseline}
        acting.append(-chance * reward)
        judging.append(F.smooth_l1_loss(value, gain.detach()))
    opt.zero_grad()
    (torch.stack(acting).sum() + torch.stack(judging).sum()).backward()
    opt.step()
"""


@pytest.mark.parametrize("baseline", ["value.detach()", "value.item()", "value.data"])
def test_a_baseline_of_returns_that_are_not_known_is_rightly_detached(baseline: str) -> None:
    check(ACTOR.format(baseline=baseline))


NORMALISING = """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.zeros(1, 2))
        self.ready = False
    def forward(self, x):
        if not self.ready:
            self.s.data = (-torch.log(x.std(dim=0, keepdim=True))).detach()
            self.ready = True
        return x * torch.exp(self.s), self.s.sum()
class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.mix, self.second = Norm(), nn.Linear(2, 2), Norm()
    def forward(self, x):
        total = torch.zeros(x.shape[0])
        x, change = self.first(x)
        total += change
        x, change = self.second(self.mix(x))
        total += change{cut}
        return x, total
flow = Flow()
opt = torch.optim.Adam(flow.parameters())
for step in range(5):
    opt.zero_grad()
    z, change = flow(torch.randn(8, 2))
    (z.pow(2).sum(1) - change).mean().backward()
    opt.step()
"""


def test_values_that_a_parameter_begins_with_are_not_blamed_for_a_later_cut() -> None:
    check(NORMALISING.format(cut=""))


CODEBOOK = """
encoder, decoder, book = nn.Linear(4, 3), nn.Linear(3, 4), nn.Embedding(8, 3)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *book.parameters()])
for x in torch.randn(9, 5, 4):
    z = encoder(x)
    code = book(torch.cdist(z, book.weight).argmin(1))
    commit = F.mse_loss(code.detach(), z){first}
    moved = {moved}
    code = z + (code - z).detach()
    loss = F.mse_loss(decoder(code), x) + commit + moved
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("moved", "first"),
    [("F.mse_loss(code.detach(), z)  # GS203", ""), ("0", "  # GS203")],
)
def test_a_codebook_without_gradient_is_not_blamed_on_its_straight_through_estimator(
    moved: str, first: str
) -> None:
    check(CODEBOOK.format(moved=moved, first=first))


@pytest.mark.parametrize("moved", ["F.mse_loss(code, z.detach())", "(code - z.detach()).pow(2).mean()"])
def test_a_codebook_that_learns_is_fine(moved: str) -> None:
    check(CODEBOOK.format(moved=moved, first=""))
