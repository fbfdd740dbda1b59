"""Of one thing that several analyses found, the gravest is told: who trains a model is sure of what its file only guesses."""

from __future__ import annotations

from collections.abc import Iterable

from gradsight.model.events import SEVERITY_ORDER
from gradsight.model.finding import Finding

Place = tuple[str, str, int, int]


def gravest(findings: Iterable[Finding]) -> dict[Place, Finding]:
    """One finding for each rule and place, by path, code, line and column; of equals the first."""
    found: dict[Place, Finding] = {}
    for finding in findings:
        key = (finding.path, finding.code, finding.span.line, finding.span.column)
        known = found.get(key)
        if known is None or SEVERITY_ORDER[finding.severity] < SEVERITY_ORDER[known.severity]:
            found[key] = finding
    return found
