"""A text that comes back, or in which one line is being typed, is answered without an analysis."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from gradsight.analysis import Analyser, analyze, no_modules
from gradsight.interp.recent_texts import MOST_TEXTS, other_line
from gradsight.model import Settings, Source
from gradsight.model.source import Span
from tests.interp.fresh_analysis import FreshAnalysis

PROGRAM = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Linear(2, 2)

    def forward(self, x):
        y = self.part(x).exp()
        y *= 2
        return y


def other_loss(x):
    y = x.exp()
    y *= 2
    return y
"""
PROGRAMS = sorted((Path(__file__).resolve().parents[2] / "fixtures" / "programs").glob("*.py"))


class Told:
    """What is said of one text after the other, and whether anything was executed for it."""

    def __init__(self, text: str) -> None:
        self.analyser = Analyser()
        self.lines_of(text)

    def lines_of(self, text: str, settings: Settings | None = None) -> list[int]:
        self.report = self.analyser.analyze(Source("a.py", text), settings)
        return [finding.span.line for finding in self.report.findings]

    @property
    def executed(self) -> str:
        """The text that was executed last."""
        return self.analyser._memories["a.py"].text


def changed(old: str, new: str) -> str:
    assert PROGRAM.count(old) == 1
    return PROGRAM.replace(old, new)


def test_while_a_line_is_typed_the_rest_says_what_it_said() -> None:
    told = Told(PROGRAM)
    typed = changed("        return y\n\n\ndef", "        z = self.part(\n        return y\n\n\ndef")
    assert told.lines_of(typed) == [12, 19]
    assert told.executed == PROGRAM
    [problem] = told.report.syntax_problems
    assert problem.span.line == 13


def test_nothing_is_said_of_what_stood_on_the_line_itself() -> None:
    told = Told(PROGRAM)
    assert told.lines_of(changed("self.part(x).exp()", "self.part(x).exp(")) == [18]
    assert told.lines_of(changed("self.part(x).exp()", "self.part(x).cos()")) == analyzed(told.executed)
    assert told.executed != PROGRAM


def analyzed(text: str) -> list[int]:
    return [finding.span.line for finding in analyze(Source("a.py", text)).findings]


def test_what_else_is_edited_in_a_broken_text_is_executed() -> None:
    told = Told(PROGRAM)
    broken = changed("        self.part = nn.Linear(2, 2)\n", "        self.part = nn.Linear(2, 2\n")
    told.lines_of(broken)
    assert told.executed == PROGRAM
    further = broken.replace("    y *= 2\n    return y\n", "    y = 2 * y\n    return y\n")
    told.lines_of(further)
    assert told.executed == further


def test_a_text_that_comes_back_is_not_executed_again() -> None:
    told = Told(PROGRAM)
    other = changed("y = self.part(x).exp()", "y = self.part(x).relu()")
    between = told.lines_of(other)
    assert told.lines_of(PROGRAM) == [12, 18]
    assert told.executed == other
    assert told.lines_of(other) == between


def test_under_other_settings_it_is_judged_again() -> None:
    told = Told(PROGRAM)
    assert told.lines_of(PROGRAM, Settings(ignore=frozenset({"GS101"}))) == []


def test_what_it_imports_has_changed() -> None:
    parts = Source("parts.py", "def scaled(y):\n    return y.mul_(2)\n")
    text = "import torch\nfrom parts import scaled\ny = torch.ones(3, requires_grad=True).exp()\nscaled(y).sum().backward()\n"

    def finder(module: str, level: int, path: str) -> Source | None:
        return parts if module == "parts" else None

    modules = no_modules()
    analyser = Analyser(modules)
    assert analyser.analyze(Source("a.py", text), finder=finder).findings
    parts = Source("parts.py", "def scaled(y):\n    return y.mul(2)\n")
    modules.renew(parts)
    assert analyser.analyze(Source("a.py", text), finder=finder).findings == ()


def test_so_many_texts_are_known_and_the_last_that_parsed_is_among_them() -> None:
    told = Told(PROGRAM)
    for number in range(MOST_TEXTS + 2):
        # A string of several lines that is not closed: what it swallows is not known.
        told.lines_of(PROGRAM + f'"""{number}\n')
    assert told.lines_of(changed("nn.Linear(2, 2)", "nn.Linear(2, 2")) == [12, 18]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("a\nb\nc", "a\nx\ny\nc"),
        ("a\nb\nc", 'a\n"""\nc'),
        ("a\nb\nc", "a\nb\\\nc"),
        ("a\nb\nc", "a\n@b\nc"),
        ("a\nb\nc", "a\n\0\nc"),
        ("a\n'''\nc", "a\nc"),
        ("a\r\nb", "a\r\nc"),
    ],
)
def test_lines_that_reach_further_are_no_single_lines(text: str, other: str) -> None:
    assert other_line(other, text) is None


def test_places_move_with_the_lines_that_came() -> None:
    line = other_line("a\n\nnew\nb\nc", "a\nb\nc")
    assert line is not None
    assert line.moved(Span(1, 0, 1, 1)) == Span(1, 0, 1, 1)
    assert line.moved(Span(2, 0, 3, 1)) == Span(4, 0, 5, 1)
    assert line.moved(Span(1, 0, 2, 1)) is None


TYPED = ["(", ")", "[", "]", "{", "'", ":", "=", "if x:", "else:", "for", "def f(", "x = (1,", "return", "   ", "f'{", "#", "try:"]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_what_is_not_executed_does_not_parse(seed: int) -> None:
    rng = random.Random(seed)
    text = rng.choice(PROGRAMS).read_text(encoding="utf-8")
    told, oracle = Told(text), FreshAnalysis()
    assert oracle.agrees(told.report, Source("a.py", text))
    for _ in range(25):
        lines = text.split("\n")
        place = rng.randrange(len(lines))
        if rng.random() < 0.2:
            del lines[place]
        elif rng.random() < 0.5:
            lines.insert(place, "    " * rng.randrange(3) + rng.choice(TYPED))
        else:
            column = rng.randrange(len(lines[place]) + 1)
            lines[place] = lines[place][:column] + rng.choice(TYPED) + lines[place][column:]
        edited = "\n".join(lines)
        told.lines_of(edited)
        assert oracle.agrees(told.report, Source("a.py", edited))
        if told.report.syntax_problems:
            with pytest.raises(SyntaxError):
                ast.parse(edited)
        if not told.report.syntax_problems and rng.random() < 0.5:
            text = edited
    assert oracle.waited > 0


NETS = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Linear(2, 2)

    def forward(self, x):
        y = self.part(x).exp()
        return y.sigmoid() * 2


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        return self.net(x).sigmoid()
"""


def records(analyser: Analyser) -> dict[str, object]:
    return {name: record for (_, name), record in analyser._memories["a.py"].records.items()}


def test_a_unit_that_comes_back_brings_what_rested_on_it() -> None:
    analyser = Analyser()
    analyser.analyze(Source("a.py", NETS))
    before = records(analyser)
    analyser.analyze(Source("a.py", NETS.replace("self.part(x)", "self.part.forward(x)")))
    assert records(analyser)["Outer.forward"] is not before["Outer.forward"]
    # The text is another one: a comment tells it from the first.
    back = Source("a.py", NETS + "# back\n")
    assert analyser.analyze(back) == analyze(back)
    assert records(analyser)["Net.forward"] is before["Net.forward"]
    assert records(analyser)["Outer.forward"] is before["Outer.forward"]


def test_a_unit_that_comes_back_with_another_body_has_what_did_not_execute_it() -> None:
    text = (
        NETS
        + "\n\nclass Other(nn.Module):\n    def forward(self, x):\n        return Net().part(x).sigmoid()\n"
    )
    analyser = Analyser()
    analyser.analyze(Source("a.py", text))
    before = records(analyser)
    analyser.analyze(Source("a.py", text.replace("self.part(x)", "self.part.forward(x)")))
    back = Source("a.py", text.replace("sigmoid() * 2", "sigmoid() * 3"))
    assert analyser.analyze(back) == analyze(back)
    assert records(analyser)["Other.forward"] is before["Other.forward"]
    assert records(analyser)["Net.forward"] is not before["Net.forward"]


def test_an_object_of_an_inherited_constructor_is_made_on_a_line_of_its_own_class() -> None:
    text = "import torch\nfrom torch import nn\n\n\nclass Base(nn.Module):\n    def __init__(self):\n        super().__init__()\n        raise OSError\n\n\nclass Net(Base):\n    def forward(self, x):\n        return x.exp()\n"
    moved = text.replace("class Net", "# down\nclass Net")
    analyser = Analyser()
    analyser.analyze(Source("a.py", text))
    assert analyser.analyze(Source("a.py", moved)) == analyze(Source("a.py", moved))
