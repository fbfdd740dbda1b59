"""Modules with a `train` of their own that keeps a part of them in eval mode, and those that stay there by mistake."""

from __future__ import annotations

import pytest

from tests.interp.checking import check
from tests.interp.running import run, safe

MODEL = """
def freeze(m):
    if isinstance(m, nn.BatchNorm1d):
        m.eval()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        self.b = nn.Linear(4, 1)
    def train(self, mode=True):
        {switch}
        {freeze}
        return self
    def forward(self, x):
        return self.b(self.a(x))
net = Net()
opt = torch.optim.SGD(net.parameters(), 0.1)
"""
SWITCHES = [
    "super().train(mode)",
    "nn.Module.train(self, mode)",
    "self.training = mode; self.a.train(mode); self.b.train(mode)",
]
FREEZES = [
    "self.a[1].eval()",
    "self.a.apply(freeze)",
    "self.a[1].train(False)",
    "[m.eval() for m in self.modules() if isinstance(m, nn.BatchNorm1d)]",
]
ROUNDS = """
for epoch in range(2):
    net.train()
    for _ in range(2):
        opt.zero_grad()
        net(torch.randn(4, 3)).pow(2).mean().backward()
        opt.step()
    {}
    with torch.no_grad():
        net(torch.randn(4, 3))
"""


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("freeze", FREEZES)
def test_a_part_that_the_train_method_freezes_is_frozen_on_purpose(switch: str, freeze: str) -> None:
    frozen = MODEL.format(switch=switch, freeze=freeze)
    safe(frozen + ROUNDS.format("net.eval()") + "assert not net.training and not net.a[1].training\n")
    safe(frozen + ROUNDS.format("pass") + "assert net.training and not net.a[1].training\n")


@pytest.mark.parametrize("switch", SWITCHES[:2])
@pytest.mark.parametrize("freeze", FREEZES)
def test_a_model_that_is_never_switched_back_is_told_where_it_was_switched(switch: str, freeze: str) -> None:
    model = MODEL.replace("nn.Linear(4, 1)", "nn.Sequential(nn.Dropout(), nn.Linear(4, 1))")
    program = model.format(switch=switch, freeze=freeze) + ROUNDS.replace("net.train()", "pass")
    check(program.format("net.eval()  # GS505"))
    run(program.format("net.eval()") + "assert not net.b.training\n")


def test_an_unknown_model_that_is_left_in_eval_mode_is_reported() -> None:
    check(
        """
        def train(model, loader, optimizer):
            for epoch in range(10):
                for x, y in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(x), y).backward()
                    optimizer.step()
                model.eval()  # GS505
                with torch.no_grad():
                    for x, y in loader:
                        model(x)
        """
    )


def test_a_part_that_each_epoch_puts_into_eval_mode_is_meant_to_be() -> None:
    check(
        """
        def train(backbone, head, loader, optimizer):
            for epoch in range(10):
                head.train()
                backbone.eval()
                for x, y in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(head(backbone(x)), y).backward()
                    optimizer.step()
        """
    )
