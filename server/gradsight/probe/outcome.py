"""How a probe can end: a closed union of values.  No exception of the user's program, or of ours, crosses this line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Report = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Observed:
    """The program ran to its end, or to the number of steps that was asked for."""

    report: Report
    output: str = ""


@dataclass(frozen=True, slots=True)
class Raised:
    """The program ended with an error; the report has it, and the blame."""

    report: Report
    output: str = ""


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The time was over.  `report` has what was seen until then."""

    seconds: float
    report: Report | None = None
    output: str = ""


@dataclass(frozen=True, slots=True)
class Died:
    """The process ended without a report: a signal, `os._exit`, or a kill from outside."""

    reason: str
    report: Report | None = None
    output: str = ""


@dataclass(frozen=True, slots=True)
class CouldNotRun:
    """Nothing ran: no interpreter, no torch, no such program, a Python that is too old, another protocol."""

    reason: str
    detail: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The user changed their mind."""

    report: Report | None = None
    output: str = ""


Outcome = Observed | Raised | TimedOut | Died | CouldNotRun | Cancelled


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a running probe is."""

    backwards: int = 0
    steps: int = 0
    faults: int = 0
    seconds: float = 0.0
    rank: int = 0


def kind_of(outcome: Outcome) -> str:
    """The word for an outcome in reports: clean, faults, raised, timeout, died or could-not-run."""
    if isinstance(outcome, Observed):
        return "faults" if outcome.report["faults"] else "clean"
    if isinstance(outcome, Raised):
        return "raised"
    if isinstance(outcome, TimedOut):
        return "timeout"
    if isinstance(outcome, (Died, Cancelled)):
        return "died"
    return "could-not-run"


@dataclass(frozen=True, slots=True)
class Streams:
    """Who hears what the program prints while it runs; nothing is passed on when None."""

    stdout: int | None = None
    stderr: int | None = None
    kept: int = field(default=64 * 1024)
