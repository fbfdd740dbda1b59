"""A rule is one file and one line: added to a copy of the project, it is found wherever rules are spoken of."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("server/gradsight", "server/gradsight_dev", "tests/rules")
FILES = ("package.json", "tests/__init__.py")
THROW_AWAY = '''"""A leaf is written, said once more.

## Why torch refuses

It is told by another rule already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text
from gradsight.model.torch_messages import alone

if TYPE_CHECKING:
    from gradsight.fixes.draft import Drafts, FixCase


def judge(event: Event) -> Finding | None:
    return make_finding(event, RULE.code, RULE.name, f"{text(event, 'target')} is thrown away", "warning")


def fix(case: FixCase) -> Drafts:
    from gradsight.fixes.inplace import leaf_written

    return leaf_written(case)


RULE = Rule(
    "GS199",
    "thrown-away",
    ("leaf-written",),
    judge,
    __doc__,
    advice="do not throw it away",
    fix=fix,
    silences=("GS102",),
    torch_raises=True,
    messages=(alone(r"no such thing", "It was thrown away."),),
    observed_as=("thing-thrown-away",),
)
'''
PROGRAM = "import torch\n\nweight = torch.ones(3, requires_grad=True)\nweight.add_(1)\n"
# What each part of the project says about the rules, as one JSON object.
ASKING = """
import json
from gradsight.analysis import analyze
from gradsight.fixing import fixes_for
from gradsight.model import Source
from gradsight.probe.kinds import coded
from gradsight.probe.document import finding_of
from gradsight.rules import rule_of
from gradsight.session.tracebacks import meaning_of
from gradsight.session.verdicts import judge
from gradsight_dev import rule_pages, settings_schema

path = "program.py"
source = Source(path, open(path).read())
report = analyze(source)
[finding] = report.findings
place = {"filename": path, "location": {"row": 4, "column": 1}, "end_location": {"row": 4, "column": 5}}
seen = {"kind": "thing-thrown-away", "message": "", "severity": "error", "certainty": "certain", "related": [],
        "evidence": {}, **place}
faults = [finding_of(fault) for fault in coded({"faults": [seen]})["faults"]]


def verdict(outcome, faults):
    document = {"outcome": outcome, "faults": faults, "torch": "2", "backwards": 1}
    judged = judge([finding], document, {path: range(1, 5)}, source.text, path)
    return [(each.finding.code, each.verdict) for each in judged]


print(json.dumps({
    "fixes": [fix.code for fix in fixes_for(source, finding, report=report)],
    "advice": rule_of("GS199").advice,
    "meaning": meaning_of("there is no such thing").codes,
    "setting": settings_schema.schema()["gradsight.severity"]["properties"].get("GS199", {}).get("markdownDescription"),
    "page": rule_pages.pages().get("thrown-away.md", ""),
    "listing": rule_pages.pages()["README.md"],
    "names": [fault["name"] for fault in faults],
    "confirmed": verdict("raised", faults),
    "without proof": verdict("clean", []),
}))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the project, as far as rules are concerned, beside a program with a fault."""
    project = tmp_path / "project"
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, project / name)
    (project / "program.py").write_text(PROGRAM)
    return project


def run(project: Path, *arguments: str, status: int = 0) -> str:
    """What Python says when it runs this in the copy, with the folders of the copy."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(project / "server"), str(project)])}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def added_lines(project: Path) -> dict[str, list[str]]:
    """The files of the copy that are not as in the project, with the lines they have more."""
    return {
        path.relative_to(project).as_posix(): sorted(
            set(path.read_text().splitlines()) - set(original(path, project).splitlines())
        )
        for path in changed(project)
    }


def changed(project: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((project / folder).rglob("*.py")):
            before = ROOT / path.relative_to(project)
            if not before.exists() or not filecmp.cmp(path, before, shallow=False):
                yield path


def original(path: Path, project: Path) -> str:
    before = ROOT / path.relative_to(project)
    return before.read_text() if before.exists() else ""


def test_a_file_and_a_line_make_a_rule(copy: Path) -> None:
    rules = copy / "server" / "gradsight" / "rules"
    (rules / "thrown_away.py").write_text(THROW_AWAY)
    listing = rules / "__init__.py"
    listing.write_text(
        listing.read_text().replace(
            '    "copied_by_tensor",\n', '    "thrown_away",\n    "copied_by_tensor",\n'
        )
    )
    touched = added_lines(copy)
    assert set(touched) == {"server/gradsight/rules/__init__.py", "server/gradsight/rules/thrown_away.py"}
    assert touched["server/gradsight/rules/__init__.py"] == ['    "thrown_away",']

    checked = json.loads(run(copy, "-m", "gradsight", "check", "--format", "json", "program.py", status=1))
    assert [(each["code"], each["location"]["row"]) for each in checked] == [("GS199", 4)]
    assert "# GS199 thrown-away\n\nA leaf is written" in run(
        copy, "-m", "gradsight", "explain", "thrown-away"
    )
    assert "GS199  thrown-away" in run(copy, "-m", "gradsight", "rules")
    said = json.loads(run(copy, "-c", ASKING))
    assert set(said["fixes"]) == {"GS199"}
    assert said["advice"] == "do not throw it away"
    assert said["meaning"] == ["GS199"]
    assert said["setting"] == "thrown-away: A leaf is written, said once more."
    assert "# GS199 thrown-away" in said["page"]
    assert "| GS199 | [thrown-away](thrown-away.md) |" in said["listing"]
    assert said["names"] == ["thrown-away"]
    assert said["confirmed"] == [["GS199", "confirmed"]]
    assert said["without proof"] == [["GS199", "undecided"]]


def test_a_new_rule_is_begun_by_one_command(copy: Path) -> None:
    said = run(copy, "-m", "gradsight_dev.new_rule", "GS198", "leaf-touched", "--kind", "leaf-written")
    assert "1. write the page" in said
    touched = added_lines(copy)
    assert set(touched) == {
        "server/gradsight/rules/__init__.py",
        "server/gradsight/rules/leaf_touched.py",
        "tests/rules/test_leaf_touched.py",
    }
    assert touched["server/gradsight/rules/__init__.py"] == ['    "leaf_touched",']
    listed = json.loads(run(copy, "-m", "gradsight", "rules", "--format", "json"))
    codes = [each["code"] for each in listed]
    assert codes == sorted(codes)
    assert "GS198" in codes
    assert "## Fix safety" in run(copy, "-m", "gradsight", "explain", "GS198")
    run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/rules/test_leaf_touched.py")
    for tool in ("check", "format"):
        begun = ["server/gradsight/rules/leaf_touched.py", "tests/rules/test_leaf_touched.py"]
        options = ["--check"] if tool == "format" else []
        run(
            copy, "-m", "ruff", tool, "--no-cache", "--config", str(ROOT / "pyproject.toml"), *options, *begun
        )


def test_a_new_kind_of_event_is_named_as_the_first_thing_to_do(copy: Path) -> None:
    said = run(copy, "-m", "gradsight_dev.new_rule", "GS611", "layer-shared")
    assert "1. describe the event `layer-shared` in model/events.py" in said


@pytest.mark.parametrize(
    ("code", "name"),
    [("GS101", "new-rule"), ("GS199", "inplace-on-saved"), ("GS999", "new-rule"), ("GS1", "new-rule"),
     ("GS199", "New_Rule")],
)  # fmt: skip
def test_words_that_are_taken_or_wrong_are_refused(copy: Path, code: str, name: str) -> None:
    assert run(copy, "-m", "gradsight_dev.new_rule", code, name, status=2) == ""
    assert added_lines(copy) == {}
