"""Methods that are one round of a training whose loop is elsewhere: what comes too early in them, and what never comes."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

LEARNER = """
class Learner:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def learn(self, x, y):
        loss = F.mse_loss(self.net(x), y)
        {}
        {}
        {}
        return loss.item()
"""
CLEAR, STEP, BACKWARD = "self.optimizer.zero_grad()", "self.optimizer.step()", "loss.backward()"


@pytest.mark.parametrize(
    "lines",
    [
        (CLEAR, STEP + "  # GS503", BACKWARD),
        (CLEAR, BACKWARD + "  # GS512", "print(loss.item())"),
        (BACKWARD + "  # GS512", CLEAR, "print(loss.item())"),
        (CLEAR, BACKWARD, STEP),
        (BACKWARD, STEP, CLEAR),
        # The step of each call uses what the call before has computed.
        (STEP, CLEAR, BACKWARD),
        (CLEAR, "if self.warm: self.optimizer.step()", BACKWARD + "; " + STEP),
    ],
)
def test_the_order_within_one_call(lines: tuple[str, str, str]) -> None:
    check(LEARNER.format(*lines))


@pytest.mark.parametrize(
    "elsewhere",
    [
        "def apply(learner):\n    learner.optimizer.step()\n",
        "def apply(learner, strategy):\n    strategy(learner.optimizer)\n",
        "class Other(Learner):\n    def learn(self, x, y):\n        super().learn(x, y)\n        self.optimizer.step()\n",
    ],
)
def test_whoever_has_the_object_may_step_its_optimizer(elsewhere: str) -> None:
    check(LEARNER.format(CLEAR, BACKWARD, "print(loss.item())") + "\n" + elsewhere)


def test_an_optimizer_that_was_given_to_the_object_is_stepped_by_whoever_has_it() -> None:
    check("""
class Learner:
    def __init__(self, net, optimizer):
        self.net = net
        self.optimizer = optimizer

    def learn(self, x, y):
        self.optimizer.zero_grad()
        F.mse_loss(self.net(x), y).backward()
""")


TRAINER = """
class Trainer:
    def __init__(self):
        self.optimizer = None

    def learn(self, model, x, y):
        {}
        F.mse_loss(model(x), y).backward(){}
        self.optimizer.step()

    def fit(self, model, batches, optimizer=None):
        if optimizer is None:
            optimizer = torch.optim.Adam(model.parameters())
        {}
        for x, y in batches:
            self.learn(model, x, y)
"""


@pytest.mark.parametrize(
    ("first", "told", "kept"),
    [
        ("print(x)", "  # GS501", "self.optimizer = optimizer"),
        ("model.zero_grad()", "", "self.optimizer = optimizer"),
        ("self.optimizer.zero_grad()", "", "self.optimizer = optimizer"),
    ],
)
def test_a_local_name_of_another_method_is_no_second_optimizer(first: str, told: str, kept: str) -> None:
    check(TRAINER.format(first, told, kept))
