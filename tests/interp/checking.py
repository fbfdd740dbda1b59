"""check(program): GradSight must say on each line what the line's trailing comment announces, and nothing else.

`# GS502` on a line: a warning or an error with this code stands there.  `# info GS290`: information does.
Several codes are parted by commas.  A line without such a comment is a line about which GradSight is silent.
"""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source
from gradsight.model.report import Report

PREAMBLE = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
ANNOUNCED = re.compile(r"#\s*(info )?((?:GS\d{3}(?:, )?)+)\s*$")


def check(program: str) -> Report:
    """Analyse the program, with torch, nn and F imported, and compare findings with the trailing comments."""
    text = PREAMBLE + dedent(program)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADSIGHT_STRICT", "1")
        report = analyze(Source("program.py", text))
    assert not report.syntax_problems
    lines = text.splitlines()
    said = {
        (finding.span.line, finding.code, finding.severity == "info")
        for finding in report.findings
        if finding.severity != "hint"
    }
    expected = set(announced(lines))
    assert describe(said - expected, lines) == [], "said without being announced"
    assert describe(expected - said, lines) == [], "announced and not said"
    return report


def announced(lines: list[str]) -> list[tuple[int, str, bool]]:
    found = []
    for number, line in enumerate(lines, start=1):
        match = ANNOUNCED.search(line)
        if match is not None:
            found += [(number, code, match.group(1) is not None) for code in match.group(2).split(", ")]
    return found


def describe(claims: set[tuple[int, str, bool]], lines: list[str]) -> list[str]:
    return [
        f"{'info ' if quiet else ''}{code} on line {line}: {lines[line - 1].strip()}"
        for line, code, quiet in sorted(claims)
    ]
