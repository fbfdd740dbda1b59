"""A method with a new body: what others cannot see of it costs the entries that executed it, and the report is that of a fresh analysis."""

from __future__ import annotations

import random

import pytest

from gradsight.analysis import Analyser, analyze
from gradsight.model import Source
from tests.interp.fresh_analysis import FreshAnalysis

PROGRAM = """\
import torch
from torch import nn

SCALE = 2


class Model(nn.Module):
    def __init__(self, size, deep):
        super().__init__()
        self.first = nn.Linear(size, size)
        self.second = nn.Linear(size, size)
        self.cache = None
        if deep:
            self.third = nn.Linear(size, size)

    def widen(self, x):
        factor = 3
        y = x.exp()
        return y * factor

    def remember(self, x):
        factor = 2
        self.cache = x
        return x.sigmoid() * factor

    def left_open(self, x):
        raise TypeError

    def forward(self, x):
        h = self.first(x)
        h = self.widen(h)
        return self.second(h).sigmoid()


class Outer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.model = Model(size, True)

    def forward(self, x):
        return self.model(x).sigmoid()
"""


def put(old: str, new: str) -> str:
    assert PROGRAM.count(old) == 1
    return PROGRAM.replace(old, new)


def executed_again(text: str) -> set[str]:
    """The entries that are executed again after an edit; what is said is what a fresh analysis says."""
    analyser = Analyser()
    analyser.analyze(Source("program.py", PROGRAM))
    before = dict(analyser._memories["program.py"].records)
    edited = Source("program.py", text)
    assert analyser.analyze(edited) == analyze(edited)
    after = analyser._memories["program.py"].records
    names = {name: record for (_, name), record in before.items()}
    assert analyser.analyze(Source("program.py", PROGRAM)) == analyze(Source("program.py", PROGRAM))
    return {name for (_, name), record in after.items() if names.get(name) is not record}


@pytest.mark.parametrize(
    "put_in",
    [
        "        spare = max(1, 2)\n        self.cache = x",
        "        spare = undefined + 1\n        self.cache = x",
        "        for _ in range(0):\n            pass\n        self.cache = x",
    ],
)
def test_a_body_that_nobody_else_looks_at(put_in: str) -> None:
    again = executed_again(put("        self.cache = x", put_in))
    assert "Model.remember" in again
    assert ("Model.forward" in again) is put_in.startswith("        for")


def test_whoever_executed_the_method_is_executed_again() -> None:
    again = executed_again(put("factor = 3", "factor = 1 + 2"))
    assert again == {"Model.forward", "Outer.forward"}


def test_a_hazard_that_is_typed_is_found_through_all_that_execute_it() -> None:
    text = put("return y * factor", "y += factor\n        return y")
    analyser = Analyser()
    assert not [
        one for one in analyser.analyze(Source("program.py", PROGRAM)).findings if one.code == "GS101"
    ]
    found = analyser.analyze(Source("program.py", text)).findings
    assert [one.code for one in found] == ["GS101"]
    assert found == analyze(Source("program.py", text)).findings


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.cache = x\n", "self.first = x\n"),
        ("self.cache = x\n", "self.second.requires_grad_(False)\n"),
        ("raise TypeError", "return x"),
        ("raise TypeError", "spare = max(1, 2)\n        raise TypeError"),
        ("self.cache = x\n", "size = Outer(3)\n"),
        ("factor = 2", "deep = max(1, 2)\n        factor = deep"),
        ("def remember(self, x)", "def remember(self, x, size=3)"),
        ("return x.sigmoid() * factor", "yield x.sigmoid() * factor"),
    ],
)
def test_what_others_look_for_costs_all_that_rests_on_the_class(old: str, new: str) -> None:
    assert {"Model.forward", "Outer.forward"} <= executed_again(put(old, new))


LINES = [
    "spare = max(1, 2)", "x = x * 2", "x += 1", "y = x.exp()", "self.cache = None", "return x", "pass", "spare = SCALE",
    "x = x.detach()", "with torch.no_grad(): x = x * 1", "if x is None: return x", "h = self.first(x)", "del x",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_any_edits_of_methods_end_in_what_a_fresh_analysis_says(seed: int) -> None:
    rng = random.Random(seed)
    lines = PROGRAM.split("\n")
    inside = [
        place for place, line in enumerate(lines) if line.startswith("        ") and "__init__" not in line
    ]
    analyser, oracle, source = Analyser(), FreshAnalysis(), Source("program.py", PROGRAM)
    assert oracle.agrees(analyser.analyze(source), source)
    for step in range(25):
        edited = list(lines)
        for _ in range(rng.choice([1, 1, 2])):
            place = rng.choice(inside)
            if rng.random() < 0.7:
                edited.insert(place, f"        {rng.choice(LINES)}")
            else:
                edited[place] = f"        {rng.choice(LINES)}"
        source = Source("program.py", "\n".join(edited))
        assert oracle.agrees(analyser.analyze(source), source), f"seed {seed}, step {step}"
