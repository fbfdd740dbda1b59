"""The whole answer to one question: what is there to say about this source?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from gradsight.model.finding import Finding
from gradsight.model.source import Span

GapKind = Literal["budget", "import", "unknown", "syntax", "internal", "detector"]
"""What ended the knowledge: a limit of work, a module that is not there, a value or operator that is not known, a text
that does not parse, a fault of ours in one entry, a fault of ours in one detector."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A loss of precision, counted by reason: not knowing is a value, and it can be shown.

    A line of 0 speaks of the whole file.  `path` names the file if it is another than that of the report: one that it
    imports.
    """

    reason: str
    line: int
    count: int = 1
    kind: GapKind = "unknown"
    path: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many functions a text has, and how many of them were not analysed, or not to their end."""

    functions: int
    not_analysed: int = 0


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """A part of the text that does not parse; the parts that do are analysed all the same."""

    message: str
    span: Span


@dataclass(frozen=True, slots=True)
class UsedNames:
    """The names of a module that a report rests on, and the marks of its text then: of what they lead to, and of the whole."""

    path: str
    names: tuple[str, ...]
    mark: str
    text: str
    starts: tuple[int, ...] = ()
    """Where the statements begin that they lead to, if the report names lines of the module."""


@dataclass(frozen=True, slots=True)
class Report:
    """Findings in reading order, what was not understood, and what did not parse."""

    path: str
    findings: tuple[Finding, ...] = ()
    gaps: tuple[Gap, ...] = ()
    syntax_problems: tuple[SyntaxProblem, ...] = ()
    unused_suppressions: tuple[Finding, ...] = ()
    depends_on: tuple[str, ...] = field(default=())
    coverage: Coverage | None = None
    """None where nobody has counted."""
    used: Callable[[], tuple[UsedNames, ...]] = field(default=tuple, compare=False)
    """What was used of the modules that it depends on, worked out when it is asked for: more, perhaps, where something is remembered."""
