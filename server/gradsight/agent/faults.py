"""What the agent has to say: a fault with its place, its trail and its evidence.

The codes are those of the static rules, so that one name means one thing wherever it is shown.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from gradsight.agent.sites import FrameKey, Place, Stack, library_behind, library_name, place_of

# These run where they are written: the frame around them is no caller.
_PARTS_OF_A_STATEMENT = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass(frozen=True)
class Step:
    """One place of the trail: made, saved, written, needed, cut, read or called here."""

    role: str
    message: str
    place: Place

    def as_json(self) -> dict[str, Any]:
        return {"role": self.role, "message": self.message, **self.place.as_json()}


@dataclass(frozen=True)
class Fault:
    """One thing that went wrong in this run, seen and not guessed."""

    code: str
    message: str
    place: Place
    related: tuple[Step, ...] = ()
    severity: str = "error"
    evidence: dict[str, Any] = field(default_factory=dict)
    graph: dict[str, Any] | None = None
    others: tuple[Fault, ...] = ()
    """What torch would have refused next, had it not stopped here."""

    def as_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "message": self.message,
            "severity": self.severity,
            "certainty": "certain",
            **self.place.as_json(),
            "related": [step.as_json() for step in self.related],
            "evidence": self.evidence,
        }


Method = TypeVar("Method", bound=Callable[..., Any])


def quietly(method: Method) -> Method:
    """A fault of ours in an instrument is written down, and the user's program goes on as if nothing listened."""

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except Exception:
            self.ledger.problem(traceback.format_exc())
            return None

    return cast(Method, guarded)


class Ledger:
    """The faults of a run, each said once: a loop repeats a fault, it does not make a new one."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._seen: dict[tuple[Any, ...], int] = {}
        self.notes: list[str] = []
        self.problems: list[str] = []
        self._sighted: dict[tuple[str, FrameKey], None] = {}

    def add(self, fault: Fault) -> bool:
        """Whether the fault is new."""
        key = (fault.code, fault.place.filename, fault.place.cell, fault.place.row)
        if key in self._seen:
            self._seen[key] += 1
            return False
        self._seen[key] = 1
        self.faults.append(fault)
        return True

    def has(self, code: str, place: Place) -> bool:
        """Whether this was said already, on this line."""
        return (code, place.filename, place.cell, place.row) in self._seen

    def sight(self, code: str, stack: Stack) -> None:
        """What this rule predicts was seen at this place; whether it is worth a fault is another question."""
        if stack:
            self._sighted[code, stack[0]] = None

    @property
    def sighted(self) -> list[list[Any]]:
        """What was seen, as code, file and line."""
        places = [(code, place_of(frame)) for code, frame in self._sighted]
        return [[code, place.filename, place.row] for code, place in places]

    def withdraw(self, code: str, place: Place) -> None:
        """Takes back a fault that the rest of the run explained."""
        self.faults = [
            fault
            for fault in self.faults
            if not (
                fault.code == code and (fault.place.filename, fault.place.row) == (place.filename, place.row)
            )
        ]

    def problem(self, text: str) -> None:
        """A fault of ours; the first few are kept."""
        if len(self.problems) < 5:
            self.problems.append(text)

    def note(self, text: str) -> None:
        """Says once what the reader must know about this run."""
        if text not in self.notes:
            self.notes.append(text)


def step_at(role: str, message: str, where: Stack | FrameKey) -> tuple[Step, ...]:
    """The step of a trail at the innermost user frame; nothing when no user code was running."""
    if isinstance(where, FrameKey):
        return (Step(role, message, place_of(where)),)
    if not where:
        return ()
    library = inside_library("backward is called", library_behind(where)) if role == "needed" else ()
    return (Step(role, message, place_of(where[0])), *library)


def calls_of(stack: Stack) -> tuple[Step, ...]:
    """How the innermost frame was reached, nearest caller first."""
    callers = [
        outer for inner, outer in zip(stack, stack[1:]) if inner.code.co_name not in _PARTS_OF_A_STATEMENT
    ]
    return tuple(Step("call", f"called from `{key.code.co_name}`", place_of(key)) for key in callers[:2])


def inside_library(what: str, key: FrameKey | None) -> tuple[Step, ...]:
    """The line of a library that did it for the user; nothing when the user's own line did."""
    if key is None:
        return ()
    return (Step("call", f"{what} here, inside `{library_name(key)}`", place_of(key)),)
