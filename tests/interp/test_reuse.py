"""A reused analysis and a fresh one say the same, whatever was edited."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gradsight.analysis import Analyser, analyze
from gradsight.interp.parsing import parse_text
from gradsight.interp.paths import entries
from gradsight.model import Settings, Source
from gradsight.ops.table import SHIPPED
from tests.interp.fresh_analysis import FreshAnalysis

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


@pytest.mark.parametrize("seed", [*range(12), 1049])
def test_reused_analysis_equals_a_fresh_one(seed: int) -> None:
    rng = random.Random(seed)
    chosen = rng.sample(PROGRAMS, rng.choice([1, 2, 4]))
    lines = "\n".join(path.read_text(encoding="utf-8") for path in chosen).split("\n")
    if seed % 3 == 0:
        lines = as_library(lines)
    analyser, source = Analyser(), Source("edited.py", "\n".join(lines))
    oracle = FreshAnalysis()
    assert oracle.agrees(analyser.analyze(source), source)
    history: list[list[str]] = []
    for step in range(15):
        if history and rng.random() < 0.35:
            lines = history[-1]
        else:
            history.append(lines)
            lines = edited(rng, lines)
        source = Source("edited.py", "\n".join(lines))
        assert oracle.agrees(analyser.analyze(source), source), f"seed {seed}, step {step}"


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


def test_what_rests_on_the_facts_of_another_torch_is_worked_out_again(tmp_path: Path) -> None:
    text = "import torch\nx = torch.ones(3, requires_grad=True)\ny = x.exp()\ny *= 2\ny.sum().backward()\n"
    analyser = Analyser()
    assert [finding.code for finding in analyser.analyze(Source("a.py", text)).findings][:1] == ["GS101"]
    other = tmp_path / "facts.txt"
    shipped = Path(SHIPPED).read_text()
    other.write_text("".join(line for line in shipped.splitlines(True) if not line.startswith("Tensor.exp ")))
    report = analyser.analyze(Source("a.py", text), Settings(facts=str(other)))
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


LONG_FORWARD = "\n".join(f"        x = self.part(x) + {number}" for number in range(60))
COSTLY = f"""\
import torch
from torch import nn


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Sequential(*[nn.Linear(4, 4) for _ in range(64)])

    def forward(self, x):
{LONG_FORWARD}
        x += 1
        return x


def other_loss(x):
    y = x.exp()
    y *= 2
    return y
"""


def records_of(analyser: Analyser, path: str) -> dict[str, object]:
    return {name: record for (_, name), record in analyser._memories[path].records.items()}


@pytest.mark.parametrize(
    ("old", "new"), [("y *= 2", "y *= 3"), ("y = x.exp()", "\n    y = x.exp()\n    z = y + 1")]
)
def test_an_entry_that_spent_its_budget_is_not_executed_again_for_an_edit_elsewhere(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "ENTRY_BUDGET", 200)
    monkeypatch.setattr(entries, "ENTRY_PER_LINE", 1)
    analyser = Analyser()
    report = analyser.analyze(Source("deep.py", COSTLY))
    assert any(gap.kind == "budget" for gap in report.gaps)
    before = records_of(analyser, "deep.py")
    edited = Source("deep.py", COSTLY.replace(old, new))
    assert analyser.analyze(edited) == analyze(edited)
    now = records_of(analyser, "deep.py")
    assert now["Deep.forward"] is before["Deep.forward"]
    assert now["other_loss"] is not before["other_loss"]


def test_what_was_not_understood_in_an_imported_module_is_still_told_after_an_edit() -> None:
    helper = Source(
        "/p/helper.py",
        "import unheard_of\nSIZE = unheard_of.size()\n\n\ndef scale(x):\n    return x * SIZE\n",
    )
    text = "import torch\nfrom helper import scale, SIZE\n\nprint(SIZE)\n\n\ndef loss(x):\n    y = x.exp()\n    return scale(y)\n"

    def find(module: str, level: int, importer: str) -> Source | None:
        return helper if module == "helper" else None

    analyser = Analyser()
    first = analyser.analyze(Source("/p/main.py", text), None, find)
    assert any(gap.path == "/p/helper.py" for gap in first.gaps)
    edited = Source("/p/main.py", text.replace("y = x.exp()", "y = x.sin()"))
    assert analyser.analyze(edited, None, find).gaps == analyze(edited, None, find).gaps
    assert analyser.analyze(edited, None, find).gaps == analyze(edited, None, find).gaps


TOLD_BY_USE = """\
import torch
from torch import nn


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Linear(4, 4)
        self.critic = nn.Linear(4, 1)

    def act(self, x):
        return self.actor(x)


class Logger:
    def write(self, text):
        print(text)


def update_loss(agent, x):
    y = agent.act(x).sigmoid()
    y *= 2
    return y.sum() + agent.critic(x).sum()
"""


@pytest.mark.parametrize(
    ("old", "new", "is_kept"),
    [
        ("print(text)", "print(text + text)", True),
        ("print(text)", "self.critic, self.act = text, text", False),
        ("return self.actor(x)", "return self.actor(x) * 2", False),
        ("class Logger:", "class Logger(Agent):", False),
    ],
)
def test_a_class_that_was_only_looked_at_may_change_inside(old: str, new: str, is_kept: bool) -> None:
    analyser = Analyser()
    analyser.analyze(Source("agent.py", TOLD_BY_USE))
    before = records_of(analyser, "agent.py")["update_loss"]
    edited = Source("agent.py", TOLD_BY_USE.replace(old, new))
    assert analyser.analyze(edited) == analyze(edited)
    assert (records_of(analyser, "agent.py")["update_loss"] is before) == is_kept


def test_statements_on_one_line_are_one_unit_with_the_text_of_that_line_once() -> None:
    text = "import torch\n" + "; ".join(f"a{number} = torch.ones(3)" for number in range(200)) + "\n"
    units = parse_text("line.py", text).units
    assert sum(len(unit.text) for unit in units) < 2 * len(text)
    assert [len(unit.tree) for unit in units] == [1, 200]
