"""The whole answer to one question: what is there to say about this source?"""

from __future__ import annotations

from dataclasses import dataclass, field

from gradsight.model.finding import Finding
from gradsight.model.source import Span


@dataclass(frozen=True, slots=True)
class Gap:
    """A loss of precision, counted by reason: not knowing is a value, and it can be shown."""

    reason: str
    line: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """A part of the text that does not parse; the parts that do are analysed all the same."""

    message: str
    span: Span


@dataclass(frozen=True, slots=True)
class Report:
    """Findings in reading order, what was not understood, and what did not parse."""

    path: str
    findings: tuple[Finding, ...] = ()
    gaps: tuple[Gap, ...] = ()
    syntax_problems: tuple[SyntaxProblem, ...] = ()
    unused_suppressions: tuple[Finding, ...] = ()
    depends_on: tuple[str, ...] = field(default=())
