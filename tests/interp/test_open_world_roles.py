"""Optimizers that a scaler steps or that a library makes, targets by how they are made, and parts of a library's models."""

from __future__ import annotations

import pytest

from gradsight.analysis import Analyser
from gradsight.model import Source
from tests.interp.checking import PREAMBLE, check

SCALED = """
def train(model, loader, {optimizer}, {scaler}, criterion):
    for x, y in loader:
{clear}
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        {scaler}.scale(loss).backward(){claim}
        {scaler}.step({optimizer})
        {scaler}.update()
"""


@pytest.mark.parametrize("optimizer", ["optimizer", "o"])
@pytest.mark.parametrize("scaler", ["scaler", "s"])
def test_what_a_scaler_steps_is_an_optimizer_whatever_it_is_called(optimizer: str, scaler: str) -> None:
    names = {"optimizer": optimizer, "scaler": scaler}
    check(SCALED.format(clear="", claim="  # GS501", **names))
    check(SCALED.format(clear=f"        {optimizer}.zero_grad()", claim="", **names))


MADE = """
from library import instantiate

def main(cfg):
    model = instantiate(cfg.model)
    opt = {made}
    for x, y in cfg.loader:
{clear}
        loss = F.cross_entropy(model(x), y)
        loss.backward(){claim}
        opt.step()
"""


@pytest.mark.parametrize(
    "made",
    [
        "instantiate(cfg.optimizer, params=model.parameters())",
        "instantiate(cfg.optimizer)(model.parameters())",
        "getattr(torch.optim, cfg.name)(model.parameters(), lr=cfg.lr)",
    ],
)
def test_what_was_given_parameters_and_is_stepped_is_an_optimizer(made: str) -> None:
    check(MADE.format(made=made, clear="", claim="  # GS501"))
    check(MADE.format(made=made, clear="        opt.zero_grad()", claim=""))


BOOTSTRAPPED = """
critic = nn.Linear(3, 1)
opt = torch.optim.SGD(critic.parameters(), lr=0.1)
rewards, states, after = torch.randn(4, 1), torch.randn(4, 3), torch.randn(4, 3)
for _ in range(3):
    {target}
    loss = F.mse_loss(critic(states), backup){claim}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("target", "claim"),
    [
        ("backup = rewards + 0.99 * critic(after)", "  # GS290"),
        ("backup = 0.99 * critic(after) + rewards", "  # GS290"),
        ("backup = rewards + (0.99 * critic(after)).detach()", ""),
        ("with torch.no_grad(): backup = rewards + 0.99 * critic(after)", ""),
        ("backup = critic(after)", ""),
        ("backup = 0.5 * critic(after) + 0.1", ""),
    ],
)
def test_a_target_is_known_by_what_it_is_made_of(target: str, claim: str) -> None:
    check(BOOTSTRAPPED.format(target=target, claim=claim))


def test_two_critics_with_one_target_are_one_mistake() -> None:
    check(
        """
        one, two = nn.Linear(3, 1), nn.Linear(3, 1)
        opt = torch.optim.SGD([*one.parameters(), *two.parameters()], lr=0.1)
        rewards, states, after = torch.randn(4, 1), torch.randn(4, 3), torch.randn(4, 3)
        for _ in range(3):
            backup = rewards + 0.99 * torch.min(one(after), two(after))
            loss = F.mse_loss(one(states), backup)  # GS290
            loss = loss + F.mse_loss(two(states), backup)
            opt.zero_grad()
            loss.backward()
            opt.step()
        """
    )


def test_parts_of_a_library_model_are_not_named_by_names_of_ours() -> None:
    report = check(
        """
        import timm
        model = timm.create_model("resnet18", num_classes=10)
        opt = torch.optim.SGD(model.get_classifier().parameters(), lr=0.1)  # GS512
        for x, y in [(torch.randn(2, 3, 8, 8), torch.tensor([1, 2]))] * 3:
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            opt.step()
        """
    )
    (finding,) = [one for one in report.findings if one.code == "GS512"]
    assert finding.message.startswith("a part of `model` gets gradients")


AGENTS = """
class Agent(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.pi, self.q = nn.Linear(states, actions), nn.Linear(states + actions, 1)

    def act(self, states):
        return torch.tanh(self.pi(states))
{others}

def update({argument}, opt, states, after, rewards):
    backup = rewards + 0.99 * {argument}.q(torch.cat([after, {argument}.act(after)], -1))
    loss = F.mse_loss({argument}.q(torch.cat([states, {argument}.act(states)], -1)), backup){claim}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize("argument", ["agent", "ac"])
def test_an_argument_is_of_the_one_class_that_has_what_is_asked_of_it(argument: str) -> None:
    report = check(AGENTS.format(argument=argument, others="", claim="  # GS290"))
    (finding,) = report.findings
    assert finding.assumption == f"`{argument}` is an object of class `Agent`"


def test_of_two_classes_that_fit_neither_is_taken() -> None:
    check(AGENTS.format(argument="agent", others="\nclass Other(Agent):\n    pass\n", claim=""))


def test_a_class_that_is_added_later_is_seen_by_what_was_reused() -> None:
    analyser = Analyser()
    alone = PREAMBLE + AGENTS.format(argument="agent", others="", claim="")
    beside = PREAMBLE + AGENTS.format(argument="agent", others="\nclass Other(Agent):\n    pass\n", claim="")
    for text, codes in [(alone, ["GS290"]), (beside, []), (alone, ["GS290"])]:
        found = analyser.analyze(Source("program.py", text)).findings
        assert [finding.code for finding in found if finding.severity == "warning"] == codes


HOLDER = """
class Algorithm:
    def __init__(self, modules):
        self._modules = modules

    def update_alpha(self, loss):
        self._modules.alpha_optim.zero_grad()
        (self._modules.log_alpha() * loss.detach()).mean().backward()
        self._modules.alpha_optim.step()  # GS106

    def update(self, x):
        self._modules.actor_optim.zero_grad()
        loss = self._modules.policy(x).pow(2).mean()
        self.update_alpha(loss)
        loss.backward()
        self._modules.actor_optim.step()
"""


def test_what_has_several_optimizers_holds_modules_and_is_none() -> None:
    check(HOLDER.replace("alpha_optim", "actor_optim"))
    check(HOLDER.replace("  # GS106", ""))
