"""What the agent has to say: a fault with its place, its trail and its evidence.

A *kind* is the plain name of what was observed.  Which rule it belongs to is the rule's to say (`Rule.observed_as`): the
agent knows of no rule.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Literal, TypeVar, cast

from gradsight.agent.sites import FrameKey, SourceRange, Stack, library_behind, library_name, place_of

Kind = Literal[
    "saved-overwritten",
    "leaf-written",
    "shared-view-written",
    "out-refused",
    "written-in-transform",
    "saved-changed-silently",
    "graph-written-without-grad",
    "parameter-stepped",
    "alias-read-after-write",
    "rows-written-twice",
    "value-copied",
    "number-taken",
    "detached",
    "computed-without-grad",
    "no-derivative",
    "cut-hidden",
    "parameter-made",
    "gradient-is-nan",
    "gradient-zero",
    "result-ignored",
    "grad-mode-left-off",
    "checkpoint-without-grad",
    "target-not-constant",
    "grad-of-non-leaf",
    "grad-alias-overwritten",
    "non-leaf-optimized",
    "optimizer-refused",
    "statistics-left",
    "grad-is-none",
    "grad-read-in-race",
    "non-leaf-copied",
    "non-scalar-backward",
    "backward-twice",
    "state-carried",
    "graph-kept-alive",
    "penalty-without-graph",
    "grad-of-unused",
    "func-ignores-parameters",
    "graph-grows",
    "gradients-never-cleared",
    "cleared-before-step",
    "step-without-backward",
    "parameters-replaced",
    "eval-left-on",
    "scheduler-first",
    "scaled-gradients-used",
    "foreign-gradients",
    "frozen-still-moves",
    "scaler-misused",
    "parameters-not-optimized",
    "update-lost",
    "freeze-undone",
    "layer-unused",
    "clip-misplaced",
    "gradients-applied-twice",
    "model-not-copied",
    "iterator-used-up",
    "not-registered",
    "attribute-typo",
    "before-super-init",
    "parameter-refused",
    "layer-made-in-forward",
    "module-repeated",
    "softmax-before-loss",
    "gradient-count",
    "tensor-on-ctx",
    "dirty-not-marked",
    "gradient-edited",
    "gradient-refused",
]
# These run where they are written: the frame around them is no caller.
_PARTS_OF_A_STATEMENT = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass(frozen=True)
class FaultStep:
    """One place of the trail: made, saved, written, needed, cut, read or called here."""

    role: str
    message: str
    place: SourceRange

    def as_json(self) -> dict[str, Any]:
        return {"role": self.role, "message": self.message, **self.place.as_json()}


@dataclass(frozen=True)
class Fault:
    """One thing that went wrong in this run, seen and not guessed."""

    kind: Kind
    message: str
    place: SourceRange
    related: tuple[FaultStep, ...] = ()
    severity: str = "error"
    evidence: dict[str, Any] = field(default_factory=dict)
    graph: dict[str, Any] | None = None
    others: tuple[Fault, ...] = ()
    """What torch would have refused next, had it not stopped here."""

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
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
        self._sighted: dict[tuple[Kind, FrameKey], None] = {}

    def add(self, fault: Fault) -> bool:
        """Whether the fault is new."""
        key = (fault.kind, fault.place.filename, fault.place.cell, fault.place.row)
        if key in self._seen:
            self._seen[key] += 1
            return False
        self._seen[key] = 1
        self.faults.append(fault)
        return True

    def has(self, kind: Kind, place: SourceRange) -> bool:
        """Whether this was said already, on this line."""
        return (kind, place.filename, place.cell, place.row) in self._seen

    def sight(self, kind: Kind, stack: Stack) -> None:
        """This was seen at this place; whether it is worth a fault is another question."""
        if stack:
            self._sighted[kind, stack[0]] = None

    @property
    def sighted(self) -> list[list[Any]]:
        """What was seen, as kind, file and line."""
        places = [(kind, place_of(frame)) for kind, frame in self._sighted]
        return [[kind, place.filename, place.row] for kind, place in places]

    def problem(self, text: str) -> None:
        """A fault of ours; the first few are kept."""
        if len(self.problems) < 5:
            self.problems.append(text)

    def note(self, text: str) -> None:
        """Says once what the reader must know about this run."""
        if text not in self.notes:
            self.notes.append(text)


def step_at(role: str, message: str, where: Stack | FrameKey) -> tuple[FaultStep, ...]:
    """The step of a trail at the innermost user frame; nothing when no user code was running."""
    if isinstance(where, FrameKey):
        return (FaultStep(role, message, place_of(where)),)
    if not where:
        return ()
    library = inside_library("backward is called", library_behind(where)) if role == "needed" else ()
    return (FaultStep(role, message, place_of(where[0])), *library)


def calls_of(stack: Stack) -> tuple[FaultStep, ...]:
    """How the innermost frame was reached, nearest caller first."""
    callers = [
        outer for inner, outer in zip(stack, stack[1:]) if inner.code.co_name not in _PARTS_OF_A_STATEMENT
    ]
    return tuple(FaultStep("call", f"called from {_caller(key.code)}", place_of(key)) for key in callers[:2])


def _caller(code: CodeType) -> str:
    # Python 3.10 knows the name alone, and later ones the class too.
    name = str(getattr(code, "co_qualname", code.co_name)).rpartition("<locals>.")[2]
    return "the top level" if name == "<module>" else f"`{name}`"


def inside_library(what: str, key: FrameKey | None) -> tuple[FaultStep, ...]:
    """The line of a library that did it for the user; nothing when the user's own line did."""
    if key is None:
        return ()
    return (FaultStep("call", f"{what} here, inside `{library_name(key)}`", place_of(key)),)
