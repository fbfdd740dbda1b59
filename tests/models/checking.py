"""check(program): as in tests/interp, for programs on libraries; nothing that is said may lie in a model."""

from __future__ import annotations

from textwrap import dedent

from gradsight.model.report import Report
from tests.interp import checking


def check(program: str) -> Report:
    """Compare findings with the trailing comments, and look where everything that is said stands."""
    report = checking.check(program)
    lines = len((checking.PREAMBLE + dedent(program)).splitlines())
    for finding in report.findings:
        for place in (finding, *finding.related):
            assert place.path == "program.py"
            assert 1 <= place.span.line <= lines
    return report
