"""The static engine as the tester sees it: a function from text to findings, absent until it is built."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from gradsight.model import Finding, Settings, Source


def engine_exists() -> bool:
    """Whether there is an engine to compare torch with."""
    return importlib.util.find_spec("gradsight.analysis") is not None


def findings_of(text: str, path: str) -> tuple[Finding, ...]:
    """What the engine says about the program; its own failures come up as they are."""
    analysis: Any = importlib.import_module("gradsight.analysis")
    report = analysis.analyze(Source(path, text), Settings())
    return tuple(report.findings)
