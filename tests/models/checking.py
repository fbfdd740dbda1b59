"""check(program): as in tests/interp, for programs on libraries; nothing that is said may lie in a model."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source
from gradsight.model.report import Report
from tests.interp.checking import PREAMBLE, announced, describe


def check(program: str) -> Report:
    """Analyse the program, compare findings with the trailing comments, and look where everything that is said stands."""
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
    for finding in report.findings:
        for place in (finding, *finding.related):
            assert place.path == "program.py"
            assert 1 <= place.span.line <= len(lines)
    return report
