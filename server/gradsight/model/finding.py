"""What GradSight says about a program: a finding, how sure it is, and the trail that leads to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gradsight.model.source import Span

Severity = Literal["error", "warning", "info", "hint"]
Certainty = Literal["certain", "assumed"]
Role = Literal["made", "saved", "written", "needed", "cut", "read", "call", "assumed"]
CULPRITS: tuple[Role, ...] = ("made", "written", "cut", "read")
"""The places of a trail that a fault can be told at."""


@dataclass(frozen=True, slots=True)
class Related:
    """One step of the trail: made here, saved here, written here, needed here, cut here, read here, called here;
    or, as the last one, what is assumed for all of it."""

    role: Role
    message: str
    path: str
    span: Span


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about one place, with its trail.

    `data` holds the names a fix or the probe needs (variable, operator, ...), as plain strings and numbers.
    """

    code: str
    name: str
    message: str
    severity: Severity
    certainty: Certainty
    path: str
    span: Span
    related: tuple[Related, ...] = ()
    assumption: str = ""
    data: Mapping[str, str | int | bool] = field(default_factory=dict, hash=False)

    def lines(self, *roles: Role) -> set[int]:
        """The lines of the trail in the finding's own file, of some roles or of all."""
        return {
            step.span.line
            for step in self.related
            if step.path == self.path and (not roles or step.role in roles)
        }
