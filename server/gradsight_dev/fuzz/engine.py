"""The static engine as the tester sees it: a function from text to findings."""

from __future__ import annotations

from gradsight.analysis import analyze
from gradsight.model import Finding, Settings, Source


def findings_of(text: str, path: str) -> tuple[Finding, ...]:
    """What the engine says about the program; its own failures come up as they are."""
    return analyze(Source(path, text), Settings()).findings
