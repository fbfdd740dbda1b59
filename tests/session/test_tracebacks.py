"""Pasted tracebacks: torch's own messages are recognised, and the lines they are about are found."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source
from gradsight.session.tracebacks import (
    explanation,
    frames_of,
    meaning_of,
    meanings,
    message_of,
    suspects,
)
from gradsight.session.watch_notes import notes_in

# Programs that make torch say each message, with the rule that is meant first.
PROVOKED = {
    "GS101": "y = x.exp(); y *= 2; y.sum().backward()",
    "GS102": "x += 1",
    "GS103": "a, b = (x * 1).unbind(0)[:2]; a *= 2",
    "GS103 overlap": "e = torch.ones(1).expand(3); e += 1",
    "GS401": "(x * 2).backward()",
    "GS402": "y = x.exp().sum(); y.backward(); y.backward()",
    "GS203": "(x.detach() * 2).sum().backward()",
    "GS303": "torch.optim.SGD([x * 2], lr=0.1)",
    "GS406": "z = torch.ones(3, requires_grad=True); torch.autograd.grad((x * 2).sum(), z)",
    "GS306": "import copy; copy.deepcopy(x * 2)",
    "GS701": "F.apply(x, 2).sum().backward()",
    "GS204": "with torch.inference_mode():\n    t = torch.ones(3)\n(x * t).sum().backward()",
    "GS603": "M()",
    "GS202": "x.numpy()",
    "GS108": "torch.exp(x, out=torch.ones(3))",
    "GS304": "x.grad.zero_()",
}
PREAMBLE = """import torch, warnings
warnings.simplefilter("ignore")
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a * 1
    @staticmethod
    def backward(ctx, g):
        return g
class M(torch.nn.Module):
    def __init__(self):
        self.layer = torch.nn.Linear(1, 1)
"""
RUN_ALL = """
import json, sys, traceback
preamble, programs = json.load(sys.stdin)
said = {}
for name, program in programs.items():
    space = {}
    exec(preamble, space)
    exec("x = torch.ones(3, requires_grad=True)", space)
    try:
        exec(compile(program, "/project/train.py", "exec"), space)
    except Exception:
        said[name] = traceback.format_exc()
json.dump(said, sys.stdout)
"""


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """The tracebacks that torch really gives."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL],
        input=json.dumps([PREAMBLE, PROVOKED]),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", PROVOKED)
def test_a_message_of_torch_is_recognised(name: str, said: dict[str, str]) -> None:
    meaning = meaning_of(message_of(said[name]))
    assert meaning is not None, said[name]
    assert meaning.codes[0] == name.split()[0]


@pytest.mark.parametrize("name", sorted(PROVOKED))
def test_a_message_has_one_meaning_in_whatever_order_the_rules_stand(name: str, said: dict[str, str]) -> None:
    (*plain, vague) = meanings()
    message = message_of(said[name])
    meant = [each for each in plain if re.search(each.pattern, message)]
    assert meant == [meaning_of(message)] or (not meant and meaning_of(message) == vague)


def test_other_errors_mean_nothing_here() -> None:
    assert meaning_of(message_of("Traceback (most recent call last):\nValueError: too many values")) is None


def test_the_last_error_of_a_chain_counts() -> None:
    text = "ValueError: first\n\nDuring handling ...\n\nRuntimeError: second\nand more"
    assert message_of(text) == "second and more"


def test_a_bare_message_is_enough() -> None:
    assert message_of("grad can be implicitly created only for scalar outputs") == (
        "grad can be implicitly created only for scalar outputs"
    )
    assert message_of("") == ""


NOTED = """Traceback (most recent call last):
  File "/p/train.py", line 8, in <module>
    gate.sum().backward()
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation
gradsight: lib/blocks.py:7:5: error GS101 `gate *= 2` overwrites the output that `sigmoid` saved (line 6)
  7 |     gate *= 2
    |     ^^^^^^^^^ overwritten here, version 0 -> 1
  in train.py:6:8
  6 | gate = torch.sigmoid(w)
    |        ---------------- `sigmoid` saves its output here
  = trail: saved train.py:6 -> overwritten lib/blocks.py:7
  = help: write to a new tensor
  inplace-on-saved: gradsight explain GS101
"""


def test_notes_of_a_watch_are_read_back_with_their_places() -> None:
    (note,) = notes_in(NOTED, ["/p/train.py"])
    assert note.code == "GS101"
    assert [(step.role, step.path, step.line) for step in note.steps] == [
        ("saved", "/p/train.py", 6),
        ("overwritten", "/p/lib/blocks.py", 7),
    ]
    assert note.advice == "write to a new tensor"


def test_a_traceback_without_notes_has_none_and_one_may_have_several() -> None:
    assert notes_in("") == []
    assert notes_in(TRACEBACK) == []
    assert [len(note.steps) for note in notes_in(NOTED + NOTED.replace("= trail", "= trial"))] == [2, 1]


def test_an_explanation_tells_what_the_watch_saw_and_makes_its_lines_links() -> None:
    message = message_of(NOTED)
    assert "gradsight" not in message
    notes = notes_in(NOTED, ["/p/train.py"])
    text = explanation(message, [], lambda path, line: "", lambda path, line: f"{path}#{line}", notes)
    assert "## What the watch saw" in text
    assert "[blocks.py:7](/p/lib/blocks.py#7)" in text.replace("\\", "")
    assert "## Likely lines" not in text


def test_notes_from_a_notebook_keep_their_cells_and_what_stands_there() -> None:
    noted = (
        "RuntimeError: one of the variables needed for gradient computation has been modified\n"
        "gradsight: cell 3:1:1: error GS101 `y *= 3` overwrites the output of `exp`\n"
        "  . cell 2\n"
        "  2 | y = w.exp()\n"
        "    |     ------- `exp` saves its output here\n"
        "  . cell 3\n"
        "  1 | y *= 3\n"
        "    | ^^^^^^ overwritten here, version 0 -> 1\n"
        "  = trail: saved cell 2, line 2 -> overwritten cell 3, line 1\n"
        "  = help: write to a new tensor\n"
        "  inplace-on-saved: gradsight explain GS101\n"
    )
    notes = notes_in(noted)
    assert [(step.role, step.cell, step.line) for step in notes[0].steps] == [
        ("saved", 2, 2),
        ("overwritten", 3, 1),
    ]
    assert notes[0].advice == "write to a new tensor"
    text = explanation(message_of(noted), [], lambda path, line: "", lambda path, line: "", notes)
    assert "- overwritten: cell 3, line 1 `y *= 3`" in text


def test_frames_of_python_and_of_notebooks() -> None:
    text = '  File "/p/a.py", line 3, in f\n    x\nFile /p/b.py:7, in g(x)\n'
    assert [(frame.path, frame.line) for frame in frames_of(text)] == [("/p/a.py", 3), ("/p/b.py", 7)]


PROGRAM = """import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= 2
z = x.exp()
z *= 2
z.sum().backward()
y.sum().backward()
"""
TRACEBACK = 'File "/p/m.py", line 8, in <module>\nRuntimeError: ... modified by an inplace operation: ...'


def test_lines_that_the_traceback_passed_through_come_first() -> None:
    findings = analyze(Source("/p/m.py", PROGRAM)).findings
    meaning = meaning_of(message_of(TRACEBACK))
    assert meaning is not None
    found = suspects(meaning, frames_of(TRACEBACK), findings)
    assert [(each.finding.span.line, each.is_on_traceback) for each in found] == [(4, True), (6, False)]


def test_the_explanation_links_to_the_lines() -> None:
    findings = analyze(Source("/p/m.py", PROGRAM)).findings
    meaning = meaning_of(message_of(TRACEBACK))
    assert meaning is not None
    found = suspects(meaning, frames_of(TRACEBACK), findings)
    rows = PROGRAM.split("\n")
    text = explanation(
        message_of(TRACEBACK),
        found,
        lambda path, line: rows[line - 1],
        lambda path, line: f"file://{path}#L{line}",
    )
    assert "1. [m.py:4](file:///p/m.py#L4) `y *= 2`" in text
    assert "(GS101); the traceback passed through it\n" in text
    assert "[m.py:3](file:///p/m.py#L3) `exp` saves its output" in text
    assert "GS101 inplace-on-saved" in text


def test_a_message_that_is_not_about_autograd_is_not_explained() -> None:
    text = explanation("ValueError: x", [], lambda path, line: "", lambda path, line: "")
    assert "nothing to add" in text


def test_a_message_is_shown_as_it_is() -> None:
    text = explanation("a [torch.FloatTensor [3]] <b> `c`", [], lambda p, n: "", lambda p, n: "")
    assert r"\[torch.FloatTensor \[3\]\] \<b\> \`c\`" in text
