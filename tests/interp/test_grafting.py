"""An edit that does nothing costs nothing and changes nothing; one that does something is never taken for idle."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from gradsight.analysis import Analyser, analyze
from gradsight.interp.memory import Record
from gradsight.interp.paths import entries
from gradsight.model import Source
from tests.interp.fresh_analysis import FreshAnalysis

PROGRAMS = sorted((Path(__file__).resolve().parents[2] / "fixtures" / "programs").glob("*.py"))
TYPED = ["", "# note", "p", "pa", "pas", "pass", "spare", "spare =", "spare = 1", "spare = 1  # detach()", '"text"', "x = (", "...", "7", "spare = None; pass", "loss", "loss = 0", "self", "return", "n = 3", "torch", "spare = t", "spare = x", "spare = max", "spare = loss", "spare = self", "spare = helper", "spare = spare"]  # fmt: skip
TEXT = '''import torch
from torch import nn


def helper(x):
    """Says what it does."""
    y = x.exp()
    return y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 3)

    def forward(self, x):
        for _ in range(2):
            x = helper(self.line(x))
            try:
                x *= 2
            except ValueError:
                x = x + 1
        return x


def train_loss():
    loss = torch.ones(3, requires_grad=True).exp().sum()
    loss.backward()
    loss.backward()
    return loss
'''


def typed_into(rng: random.Random, lines: list[str]) -> list[str]:
    """A line put in, changed or taken out, as deep as its neighbour."""
    lines = list(lines)
    place = rng.randrange(1, len(lines))
    depth = len(lines[place]) - len(lines[place].lstrip())
    kind = rng.random()
    if kind < 0.5:
        lines.insert(place, " " * depth + rng.choice(TYPED))
    elif kind < 0.7:
        lines[place] += rng.choice(["", " ", "  # note", "  # x.detach()"])
    elif kind < 0.85 and any(line.strip() in TYPED for line in lines):
        lines.pop(rng.choice([number for number, line in enumerate(lines) if line.strip() in TYPED]))
    else:
        lines[place] = lines[place].replace("(", "(\n" + " " * (depth + 8), 1)
    return "\n".join(lines).split("\n")


def same_as_fresh(analyser: Analyser, text: str, note: str, oracle: FreshAnalysis | None = None) -> None:
    source = Source("typed.py", text)
    fresh = Analyser()
    told = fresh.analyze(source)
    if oracle is None:
        assert analyser.analyze(source) == told, note
    else:
        assert oracle.agrees(analyser.analyze(source), source), note
    whole = (1, text.count("\n") + 1)
    assert analyser.cards(source, *whole) == fresh.cards(source, *whole), note
    for unit in [unit for memory in analyser._memories.values() for unit in memory.units]:
        assert "\n".join(text.split("\n")[unit.start - 1 : unit.end]) == unit.text, note
        for node in ast.walk(unit.tree[0]):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                line = text.split("\n")[node.lineno + unit.offset - 1]
                assert node.name in line, note


@pytest.mark.parametrize("seed", range(12))
def test_typing_ends_in_what_a_fresh_analysis_says(seed: int) -> None:
    rng = random.Random(seed)
    chosen = rng.sample(PROGRAMS, rng.choice([1, 2]))
    lines = "\n".join(path.read_text(encoding="utf-8") for path in chosen).split("\n")
    analyser, oracle, source = Analyser(), FreshAnalysis(), Source("typed.py", "\n".join(lines))
    assert oracle.agrees(analyser.analyze(source), source)
    for step in range(12):
        lines = typed_into(rng, lines)
        same_as_fresh(analyser, "\n".join(lines), f"seed {seed}, step {step}", oracle)


def records_of(analyser: Analyser) -> dict[str, object]:
    (memory,) = analyser._memories.values()
    return {name: record for (_, name), record in memory.records.items()}


def edit(text: str, line: int, put: str) -> str:
    lines = text.split("\n")
    lines.insert(line - 1, put)
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("line", "put"),
    [
        (7, ""),
        (7, "    # note"),
        (8, "    s"),
        (8, "    spare"),
        (8, "    spare = 1"),
        (8, "    spare = undefined"),
        (8, "    spare = max"),
        (8, "    spare = ("),
        (8, "    pass"),
        (6, "    'text'"),
        (20, "                spare = 2"),
        (22, "                spare = 2"),
        (14, "        flag = True"),
    ],
)
def test_what_does_nothing_leaves_everything_known(line: int, put: str) -> None:
    analyser = Analyser()
    analyser.analyze(Source("typed.py", TEXT))
    before = records_of(analyser)
    changed = edit(TEXT, line, put)
    same_as_fresh(analyser, changed, put)
    after = records_of(analyser)
    assert before.keys() == after.keys()
    assert all(after[name] is before[name] for name in before)
    same_as_fresh(analyser, TEXT, "taken out again")
    assert all(records_of(analyser)[name] is before[name] for name in before)


@pytest.mark.parametrize(
    ("line", "put"),
    [
        (8, "    y = 1"),
        (8, "    x = 1"),
        (8, "    y.sin_()"),
        (8, "    spare = torch"),
        (8, "    spare = x"),
        (8, "    y.grad"),
        (8, "    global y"),
        (8, "    spare = y"),
        (8, "    spare: int = 1"),
        (8, "    print(1)"),
        (8, "    return x"),
        (8, "    del y"),
        (8, "    spare = locals()"),
        (12, "    flag = True"),
    ],
)
def test_what_may_do_something_is_worked_out_again(line: int, put: str) -> None:
    analyser = Analyser()
    analyser.analyze(Source("typed.py", TEXT))
    before = records_of(analyser)["Net.forward"]
    changed = edit(TEXT, line, put)
    same_as_fresh(analyser, changed, put)
    assert records_of(analyser).get("Net.forward") is not before


@pytest.mark.parametrize(
    "reader",
    ["    def inner():\n        return spare", "    show = lambda: spare", "    print(locals())", "    nonlocal_ = [spare for _ in y]"],
)  # fmt: skip
def test_a_name_that_is_read_is_not_idle(reader: str) -> None:
    text = TEXT.replace("    return y\n", f"{reader}\n    return y\n", 1)
    analyser = Analyser()
    analyser.analyze(Source("typed.py", text))
    before = records_of(analyser)["Net.forward"]
    same_as_fresh(analyser, edit(text, 7, "    spare = 1"), reader)
    assert records_of(analyser)["Net.forward"] is not before


def test_findings_move_with_their_lines() -> None:
    analyser = Analyser()
    first = analyser.analyze(Source("typed.py", TEXT)).findings
    moved = analyser.analyze(Source("typed.py", edit(TEXT, 17, "        # one more line"))).findings
    assert [(finding.code, finding.span.line) for finding in first] == [("GS101", 20), ("GS402", 29)]
    assert [(finding.code, finding.span.line) for finding in moved] == [("GS101", 21), ("GS402", 30)]
    assert moved == analyze(Source("typed.py", edit(TEXT, 17, "        # one more line"))).findings


LONGER = f"{TEXT}\n\nTOP = 1\nMORE = 2\n"
"""One line more does not change its budget."""


def questions_asked(monkeypatch: pytest.MonkeyPatch, analyser: Analyser, text: str) -> bool:
    """Whether an analysis looked at the entries of a file, be it to find that they are as they were."""
    asked: list[str] = []
    run = entries.Explorer.run

    def counted(self: entries.Explorer) -> list[Record]:
        asked.append(self.path)
        return run(self)

    with monkeypatch.context() as patched:
        patched.setattr(entries.Explorer, "run", counted)
        analyser.analyze(Source("typed.py", text))
    return bool(asked)


@pytest.mark.parametrize(
    ("line", "put"),
    [(7, ""), (8, "    # note"), (8, "    s"), (8, "    spare ="), (8, "    spare = 1"), (4, "# note")],
)
def test_what_says_nothing_is_not_even_looked_at(
    monkeypatch: pytest.MonkeyPatch, line: int, put: str
) -> None:
    analyser = Analyser()
    analyser.analyze(Source("typed.py", LONGER))
    changed = edit(LONGER, line, put)
    assert not questions_asked(monkeypatch, analyser, changed)
    same_as_fresh(analyser, changed, put)
    assert not questions_asked(monkeypatch, analyser, LONGER)
    same_as_fresh(analyser, LONGER, "taken out again")


@pytest.mark.parametrize("put", ["    Net", "    'Net'", "    y", "    self", "    return", "    Net = 1"])
def test_a_line_that_says_something_is_looked_at(monkeypatch: pytest.MonkeyPatch, put: str) -> None:
    analyser = Analyser()
    analyser.analyze(Source("typed.py", LONGER))
    assert questions_asked(monkeypatch, analyser, edit(LONGER, 8, put))
    same_as_fresh(analyser, edit(LONGER, 8, put), put)


def test_lines_that_change_a_budget_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    analyser = Analyser()
    analyser.analyze(Source("typed.py", LONGER))
    much_longer = edit(LONGER, 8, "\n".join(["    # note"] * 40))
    assert questions_asked(monkeypatch, analyser, much_longer)
    same_as_fresh(analyser, much_longer, "longer")
