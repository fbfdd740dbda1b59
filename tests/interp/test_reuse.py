"""A reused analysis and a fresh one say the same, whatever was edited."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gradsight.analysis import Analyser, analyze
from gradsight.model import Source
from gradsight.ops.table import SHIPPED, read_table

PROGRAMS = sorted((Path(__file__).resolve().parents[2] / "fixtures" / "programs").glob("*.py"))
INSERTS = [
    "",
    "# note",
    "x = 1",
    "    pass",
    "import math",
    "print(1)",
    "    y = 2",
    "def late():",
    "class Late:",
]
ENDINGS = [" ", "  # note", " + 1", ")", "  # gradsight: ignore", ":"]


def edited(rng: random.Random, lines: list[str]) -> list[str]:
    """One small edit, sensible or not."""
    lines = list(lines)
    place = rng.randrange(len(lines))
    kind = rng.random()
    if kind < 0.3:
        lines[place] += rng.choice(ENDINGS)
    elif kind < 0.5:
        lines.insert(place, rng.choice(INSERTS))
    elif kind < 0.65 and len(lines) > 1:
        lines.pop(place)
    elif kind < 0.8:
        column = rng.randrange(len(lines[place]) + 1)
        lines[place] = lines[place][:column] + rng.choice("ax1 ._(") + lines[place][column:]
    elif kind < 0.9:
        lines.insert(place, rng.choice(lines))
    else:
        lines[place] = lines[place].replace("*=", "= 1 *").replace("detach", "clone").replace("exp", "sin")
    return lines


def as_library(lines: list[str]) -> list[str]:
    """Only what a module without a script has: imports and definitions."""
    return [
        line
        for line in lines
        if line[:1] in (" ", "") or line.startswith(("import", "from", "class", "def", "@"))
    ]


@pytest.mark.parametrize("seed", range(12))
def test_reused_analysis_equals_a_fresh_one(seed: int) -> None:
    rng = random.Random(seed)
    chosen = rng.sample(PROGRAMS, rng.choice([1, 2, 4]))
    lines = "\n".join(path.read_text(encoding="utf-8") for path in chosen).split("\n")
    if seed % 3 == 0:
        lines = as_library(lines)
    analyser = Analyser()
    analyser.analyze(Source("edited.py", "\n".join(lines)))
    history = []
    for step in range(15):
        if history and rng.random() < 0.35:
            lines = history[-1]
        else:
            history.append(lines)
            lines = edited(rng, lines)
        source = Source("edited.py", "\n".join(lines))
        assert analyser.analyze(source) == analyze(source), f"seed {seed}, step {step}"


def test_edit_of_one_function_leaves_the_other_records_alone() -> None:
    text = "import torch\n\n\ndef first_loss(x):\n    y = x.exp()\n    y *= 2\n    return y\n\n\ndef second_loss(x):\n    y = x.sigmoid()\n    y *= 2\n    return y\n"
    analyser = Analyser()
    before = analyser.analyze(Source("two.py", text))
    kept = {name: record for (_, name), record in analyser._memories["two.py"].records.items()}
    after = analyser.analyze(
        Source("two.py", text.replace("sigmoid()\n    y *= 2", "sigmoid()\n\n    y *= 3"))
    )
    now = {name: record for (_, name), record in analyser._memories["two.py"].records.items()}
    assert [finding.span.line for finding in before.findings] == [6, 12]
    assert [finding.span.line for finding in after.findings] == [6, 13]
    assert now["first_loss"] is kept["first_loss"]
    assert now["second_loss"] is not kept["second_loss"]


def test_what_rests_on_the_facts_of_another_torch_is_worked_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import torch\nx = torch.ones(3, requires_grad=True)\ny = x.exp()\ny *= 2\ny.sum().backward()\n"
    analyser = Analyser()
    assert [finding.code for finding in analyser.analyze(Source("a.py", text)).findings][:1] == ["GS101"]
    other = tmp_path / "facts.txt"
    shipped = Path(SHIPPED).read_text()
    other.write_text("".join(line for line in shipped.splitlines(True) if not line.startswith("Tensor.exp ")))
    table = read_table(str(other))
    monkeypatch.setattr("gradsight.analysis.load", lambda: table)
    report = analyser.analyze(Source("a.py", text))
    assert "GS101" not in [finding.code for finding in report.findings]


REGISTERED = """\
import torch

REGISTRY = {}


def register(function):
    REGISTRY[function.__name__] = function
    return function


@register
def scale(y):
    return y * 2


@register
class Scale:
    def apply(self, y):
        return y * 2


x = torch.ones(3, requires_grad=True)
y = x.exp()
z = REGISTRY["scale"](y)
z.sum().backward()
w = x.exp()
v = REGISTRY["Scale"]().apply(w)
v.sum().backward()
"""


@pytest.mark.parametrize("line", [12, 18])
def test_a_definition_that_a_decorator_registers_is_executed_again_when_it_changes(line: int) -> None:
    lines = REGISTERED.splitlines()
    lines[line] = lines[line].replace("y * 2", "y.mul_(2)")
    changed = Source("program.py", "\n".join(lines) + "\n")
    analyser = Analyser()
    assert not [
        f for f in analyser.analyze(Source("program.py", REGISTERED)).findings if f.severity == "error"
    ]
    reused, fresh = analyser.analyze(changed), analyze(changed)
    assert reused.findings == fresh.findings
    assert [finding.code for finding in fresh.findings if finding.severity == "error"] == ["GS101"]
