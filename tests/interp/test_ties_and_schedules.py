"""What was tied is untied, a schedule goes on for nobody, a model is given its own state, a loss is broadcast."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.interp.checking import check

TIED = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.tie()

    def tie(self):
        self.head.weight = self.table.weight

    def forward(self, ids):
        return self.head(self.table(ids))

model = Model()
{change}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    optimizer.zero_grad()
    model(torch.tensor([1, 2])).pow(2).mean().backward()
    optimizer.step()
"""
BREAKING = [
    "model.head.weight = nn.Parameter(torch.randn(10, 4))",
    "model.table = nn.Embedding(10, 4)",
    "model.load_state_dict({'table.weight': torch.randn(10, 4)}, strict=False, assign=True)",
]


def run(source: str) -> dict[str, object]:
    known: dict[str, object] = {}
    exec("import torch\nfrom torch import nn\n" + source, known)
    return known


@pytest.mark.parametrize("change", BREAKING)
def test_a_tie_that_is_broken_is_reported_where_it_breaks(change: str) -> None:
    model = run(TIED.format(change=change))["model"]
    assert isinstance(model, nn.Module)
    assert len(list(model.parameters())) == 2
    check(TIED.format(change=f"{change}  # GS504"))


@pytest.mark.parametrize(
    "change",
    [
        *(f"{one}\nmodel.tie()" for one in BREAKING),
        "nn.init.normal_(model.table.weight)",
        "model.load_state_dict({'table.weight': torch.randn(10, 4)}, strict=False)",
        "model.head.weight = nn.Parameter(model.table.weight.detach().clone())",
    ],
)
def test_a_tie_that_holds_or_is_undone_on_purpose_is_silent(change: str) -> None:
    run(TIED.format(change=change))
    check(TIED.format(change=change))


SCHEDULED = """
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
{change}
for epoch in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 3)).pow(2).mean().backward()
    optimizer.step()
    scheduler.step(){said}
rate = optimizer.param_groups[0]["lr"]
"""
AGAIN = "optimizer = torch.optim.SGD(model.parameters(), lr=0.5)"


def test_a_schedule_does_not_know_the_new_optimizer() -> None:
    assert run(SCHEDULED.format(change=AGAIN, said=""))["rate"] == 0.5
    check(SCHEDULED.format(change=AGAIN, said="  # GS506"))


@pytest.mark.parametrize(
    "change", ["pass", f"{AGAIN}; scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)"]
)
def test_a_schedule_of_the_optimizer_that_steps_is_silent(change: str) -> None:
    assert run(SCHEDULED.format(change=change, said=""))["rate"] == 0.0625
    check(SCHEDULED.format(change=change, said=""))


FOLLOWER = """
import copy

class Agent:
    def __init__(self):
        self.policy = nn.Linear(3, 1)
        self.target = copy.deepcopy(self.policy)
        self.optimizer = torch.optim.SGD(self.policy.parameters(), lr=0.1)

    def learn(self, x):
        with torch.no_grad():
            goal = 1 + 0.9 * self.target(x)
        self.optimizer.zero_grad()
        (self.policy(x) - goal).pow(2).mean().backward()
        self.optimizer.step()

    def follow(self):
        {load}

agent = Agent()
for step in range(4):
    agent.learn(torch.randn(4, 3))
    agent.follow()
"""


def test_a_target_that_is_given_its_own_state_never_follows() -> None:
    load = "self.target.load_state_dict(self.target.state_dict())"
    agent = run(FOLLOWER.format(load=load))["agent"]
    assert not torch.equal(agent.target.weight, agent.policy.weight)  # type: ignore[attr-defined]
    check(FOLLOWER.format(load=f"{load}  # GS514"))


@pytest.mark.parametrize(
    "load",
    [
        "self.target.load_state_dict(self.policy.state_dict())",
        "state = self.policy.state_dict(); self.target.load_state_dict(state)",
    ],
)
def test_a_target_that_is_given_the_policys_state_is_silent(load: str) -> None:
    check(FOLLOWER.format(load=load))


@pytest.mark.parametrize(
    "loss",
    [
        "nn.functional.mse_loss(net(x), y)",
        "nn.L1Loss()(net(x), y)",
        "nn.SmoothL1Loss()(y, net(x))",
        "(net(x) - y).pow(2).mean()",
        "(y - torch.sigmoid(net(x))).abs().mean()",
    ],
)
def test_a_column_against_a_row_is_every_pair(loss: str) -> None:
    source = f"net = nn.Linear(3, 1)\nx, y = torch.randn(8, 3), torch.randn(8)\n({loss}).backward()  # GS609"
    check(source)


@pytest.mark.parametrize(
    "loss",
    [
        "nn.functional.mse_loss(net(x).squeeze(1), y)",
        "nn.functional.mse_loss(net(x), y[:, None])",
        "(net(x) - torch.arange(4.0)).sigmoid().mean()",
        "(net(x).squeeze(1)[:, None] - y).abs().mean()",
        "nn.functional.mse_loss(net(x[:1]), y[:1])",
    ],
)
def test_shapes_that_fit_and_pairs_on_purpose_are_silent(loss: str) -> None:
    check(f"net = nn.Linear(3, 1)\nx, y = torch.randn(8, 3), torch.randn(8)\n({loss}).backward()")


def test_an_optimizer_that_a_wrapper_was_given_is_stepped_by_it() -> None:
    check(
        """
        class Perturbed(torch.optim.Optimizer):
            def __init__(self, params, inner):
                super().__init__(params, {})
                self.inner = inner

            @torch.no_grad()
            def perturb(self):
                for group in self.param_groups:
                    for p in group["params"]:
                        self.state[p]["old"] = p.grad.clone()
                        p.add_(0.05 * p.grad)

            @torch.no_grad()
            def restore(self):
                for group in self.param_groups:
                    for p in group["params"]:
                        p.sub_(0.05 * self.state[p]["old"])

            def step(self, closure):
                closure()
                self.perturb()
                closure()
                self.restore()
                self.inner.step()

        model = nn.Linear(4, 2)
        inner = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer = Perturbed(model.parameters(), inner)
        for step in range(3):
            x = torch.randn(6, 4)

            def closure():
                optimizer.zero_grad()
                model(x).pow(2).mean().backward()

            optimizer.step(closure)
        """
    )
