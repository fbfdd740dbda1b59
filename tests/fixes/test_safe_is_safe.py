"""A fix is called safe only where the repaired program runs and computes what was meant."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.fixing import fix_all, fixes_for
from gradsight.model import Source
from gradsight_dev.attacks import DISGUISES, Attacked, attack_once, disguised
from gradsight_dev.fuzz_fixes import campaign, run

pytestmark = pytest.mark.facts

MODULE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x):
        {used}
        return x


net = Net()
net(torch.ones(2, 4)).sum().backward()
"""
EACH = "for layer in self.layers:\n            x = layer(x)"
REGISTERED = {
    "a display": ("self.layers = [nn.Linear(4, 4), nn.ReLU()]", EACH),
    "a comprehension": ("self.layers = [nn.Linear(4, 4) for _ in range(2)]", EACH),
    "an empty list that is filled": (
        "self.layers = []\n        for _ in range(2):\n            self.layers.append(nn.Linear(4, 4))",
        EACH,
    ),
    "a name that is not used again": ("layers = [nn.Linear(4, 4)]\n        self.layers = layers", EACH),
    "a dict with words for keys": (
        "self.layers = {'first': nn.Linear(4, 4)}",
        "for layer in self.layers.values():\n            x = layer(x)",
    ),
}
NOT_REGISTERED = {
    "lists of modules": (
        "self.layers = []\n        for _ in range(2):\n            self.layers.append([nn.Linear(4, 4), nn.Tanh()])",
        "for one, two in self.layers:\n            x = two(one(x))",
    ),
    "a module or nothing": (
        "self.layers = [nn.Linear(4, 4), None]",
        "for layer in self.layers:\n            x = layer(x) if layer is not None else x",
    ),
    "a name that is filled later": (
        "layers = []\n        self.layers = layers\n        layers.append(nn.Linear(4, 4))",
        EACH,
    ),
    "keys with dots": (
        "self.layers = {'block.first': nn.Linear(4, 4)}",
        "for layer in self.layers.values():\n            x = layer(x)",
    ),
    "keys that are numbers": (
        "self.layers = {}\n        self.layers[0] = nn.Linear(4, 4)",
        "x = self.layers[0](x)",
    ),
    "a key that every module has": (
        "self.layers = {'type': nn.Linear(4, 4)}",
        "x = self.layers['type'](x)",
    ),
    "a list that is added to another": (
        "self.layers = [nn.Linear(4, 4)]",
        "for layer in [nn.Identity()] + self.layers:\n            x = layer(x)",
    ),
    "a list that is sorted": (
        "self.layers = [nn.Linear(4, 4), nn.ReLU()]",
        "for layer in sorted(self.layers, key=str):\n            x = layer(x)",
    ),
    "a method of lists": (
        "self.layers = [nn.Linear(4, 4), nn.ReLU()]",
        "x = self.layers[self.layers.index(self.layers[0])](x)",
    ),
}


def titles(text: str, safety: str) -> list[str]:
    source = Source("program.py", text)
    return [
        fix.title
        for finding in analyze(source).findings
        for fix in fixes_for(source, finding)
        if fix.safety == safety
    ]


def check_repaired(text: str) -> str:
    repaired, applied = fix_all(Source("program.py", text))
    assert applied
    assert run(repaired).error == ""
    return repaired


@pytest.mark.parametrize("name", REGISTERED)
def test_a_container_of_modules_is_registered(name: str) -> None:
    made, used = REGISTERED[name]
    assert "nn.Module" in check_repaired(MODULE.format(made=made, used=used))


@pytest.mark.parametrize("name", NOT_REGISTERED)
def test_a_container_that_a_module_list_cannot_replace_is_left_alone(name: str) -> None:
    made, used = NOT_REGISTERED[name]
    text = MODULE.format(made=made, used=used)
    assert run(text).error == ""
    assert titles(text, "safe") == []
    assert all(title.endswith("(its parameters are registered)") for title in titles(text, "unsafe"))


LEAVES = {
    "a list": "[torch.ones(2, requires_grad=True).to(torch.float64) for _ in range(3)]",
    "a display": "[torch.ones(2, requires_grad=True).double()]",
    "a tuple": "(torch.ones(2, requires_grad=True) * 0.5,)",
}


@pytest.mark.parametrize("name", LEAVES)
def test_each_tensor_of_a_list_becomes_the_leaf(name: str) -> None:
    text = f"import torch\nfactors = {LEAVES[name]}\noptimizer = torch.optim.SGD(factors, lr=0.1)\n"
    assert "can't optimize a non-leaf" in run(text).error
    repaired, applied = fix_all(Source("program.py", text))
    assert not applied or run(repaired).error == ""
    assert not applied or "requires_grad_()" in repaired


def test_safe_fixes_of_generated_variants_run_and_keep_values_and_gradients() -> None:
    tally = campaign(25, number=7)
    assert sum(tally.judged.values()) >= 25
    assert tally.broken == []
    assert tally.other == []


@pytest.mark.parametrize("kind", ["hazard", "twin"])
@pytest.mark.parametrize("name", DISGUISES)
def test_a_disguised_write_is_neither_misjudged_nor_broken_by_a_fix(name: str, kind: str) -> None:
    outcome = Attacked()
    attack_once(name, disguised(name, kind), outcome)
    assert outcome.wrong == []
    assert not outcome.missed or name in NOT_SEEN


NOT_SEEN = {
    "generator sent a value",
    "exec of a constant",
    "protocols, class made by type()",
    "protocols, init subclass",
    "protocols, new",
    "protocols, iteration by getitem",
    "protocols, context variable",
    "protocols, chain map",
    "torch, apply over modules",
    "torch, an empty slice",
    "memory, reshape that shares",
    "ways, a generator that is closed",
    "further protocols, partialmethod",
    "callers, tree map",
    "callers, groupby",
    "callers, stop iteration value",
    "windows, atleast",
    "hooks, tensor hook writes",
}
"""Disguises in which the hazard is not found: silence is a miss there, and nothing is called safe."""


@pytest.mark.parametrize("name", sorted(NOT_SEEN))
def test_what_is_not_seen_is_not_called_safe(name: str) -> None:
    report = analyze(Source("program.py", disguised(name, "hazard")))
    assert [finding for finding in report.findings if finding.code == "GS190"] == []
