"""Updates whose other half is elsewhere: losses that are arguments, data that is differentiated, results that are numbers."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

WRAPPED = """
class Algorithm:
    class Update:
        def __init__(self, optimizer: torch.optim.Optimizer, module: nn.Module, max_grad_norm=None):
            self._optimizer = optimizer
            self._module = module
            self._max_grad_norm = max_grad_norm

        def clip(self):
            return self._max_grad_norm is not None

        def step(self, loss):
{body}
"""
CLIP = """if self._max_grad_norm is not None:
    nn.utils.clip_grad_norm_(self._module.parameters(), self._max_grad_norm){mark}"""


def update(*statements: str) -> str:
    lines = [line for statement in statements for line in statement.split("\n")]
    return WRAPPED.format(body="\n".join("            " + line for line in lines))


def test_clip_before_the_loss_that_is_an_argument_is_differentiated() -> None:
    check(
        update(
            "self._optimizer.zero_grad()",
            CLIP.format(mark="  # GS513"),
            "loss.backward()",
            "self._optimizer.step()",
        )
    )


def test_clip_after_the_step_of_a_class_in_a_class() -> None:
    check(
        update(
            "self._optimizer.zero_grad()",
            "loss.backward()",
            "self._optimizer.step()",
            CLIP.format(mark="  # GS513"),
        )
    )


def test_step_before_the_loss_that_is_an_argument_is_differentiated() -> None:
    check(update("self._optimizer.zero_grad()", "self._optimizer.step()  # GS503", "loss.backward()"))


@pytest.mark.parametrize("first", ["self._optimizer.zero_grad()", "pass"])
def test_clip_between_backward_and_step_is_right(first: str) -> None:
    last = "self._optimizer.zero_grad()" if first == "pass" else "pass"
    check(update(first, "loss.backward()", CLIP.format(mark=""), "self._optimizer.step()", last))


def test_step_on_what_the_caller_computed_is_right() -> None:
    check(update("self._optimizer.step()", "self._optimizer.zero_grad()", "loss.backward()"))


PENALTY = """
def penalty(output, x):
    (slope,) = torch.autograd.grad(output.sum(), x, {graph}){mark}
    return slope.pow(2).mean()

def train(critic, optimizer, loader):
    critic.train()
    for x, y in loader:
        {asked}
        output = critic(x)
        loss = output.mean() + penalty(output, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("asked", ["x.requires_grad_()", "x.requires_grad = True"])
def test_data_of_a_loader_is_differentiated_where_that_is_asked_for(asked: str) -> None:
    check(PENALTY.format(graph="retain_graph=True", mark="  # GS405", asked=asked))
    check(PENALTY.format(graph="create_graph=True", mark="", asked=asked))


ATTACK = """
def attack(model, loader, epsilon):
    for x, y in loader:
        {asked}
        loss = F.nll_loss(model(x), y)
        model.zero_grad()
        loss.backward()
        x = x + epsilon * x.grad.sign(){mark}
"""


def test_gradient_of_data_that_nobody_asked_for_is_none() -> None:
    check(ATTACK.format(asked="pass", mark="  # GS304"))
    check(ATTACK.format(asked="x.requires_grad = True", mark=""))


LOSS = """
class {name}(nn.Module):
    def __init__(self, model, measure=nn.MSELoss()):
        super().__init__()
        self.model = model
        self.measure = measure

    def forward(self, features, labels){declared}:
        return self.compare(self.model(features), labels)

    def compare(self, output, labels):
        return self.measure(output, labels){number}
"""


@pytest.mark.parametrize(("name", "declared"), [("PairLoss", ""), ("Pair", " -> torch.Tensor")])
def test_loss_that_is_a_number_is_reported_where_it_is_defined(name: str, declared: str) -> None:
    check(LOSS.format(name=name, declared=declared, number=".item()  # GS202"))
    check(LOSS.format(name=name, declared=declared, number=""))


@pytest.mark.parametrize(("name", "declared"), [("Score", ""), ("PairLoss", " -> float")])
def test_number_that_a_measure_returns_is_meant(name: str, declared: str) -> None:
    check(LOSS.format(name=name, declared=declared, number=".item()"))


SURROGATE = """
policy = nn.Linear(3, 1)
optimizer = torch.optim.Adam(policy.parameters())
for observation, before, advantage in torch.utils.data.DataLoader(load()):
    ratio = (policy(observation) - before).exp()
    plain = -advantage * {ratio}
    clipped = -advantage * ratio.clamp(0.8, 1.2)
    loss = torch.max(plain, clipped).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_the_larger_of_two_of_which_one_is_detached_learns_on_one_side_only() -> None:
    check(SURROGATE.replace("{ratio}", "ratio.detach()  # GS203"))
    check(SURROGATE.replace("{ratio}", "ratio"))


def test_the_larger_of_a_value_and_a_constant_is_right() -> None:
    check(SURROGATE.replace("{ratio}", "before.detach()"))


OLD_KINDS = """
import numpy as np

has_gpu = torch.cuda.is_available()
Floats = torch.cuda.FloatTensor if has_gpu else torch.FloatTensor
Longs = torch.cuda.LongTensor if has_gpu else torch.LongTensor
model = nn.Linear(3, 3)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(100):
    {clear}
    z = torch.autograd.Variable(Floats(np.random.normal(0, 1, (4, 3))))
    y = torch.autograd.Variable(Longs(np.random.randint(0, 3, 4)))
    rows = torch.LongTensor(range(4))
    F.cross_entropy(model(z)[rows], y).backward(){mark}
    optimizer.step()
"""


def test_old_constructors_make_tensors_without_a_graph() -> None:
    check(OLD_KINDS.format(clear="pass", mark="  # GS501"))
    check(OLD_KINDS.format(clear="optimizer.zero_grad()", mark=""))
