"""A rule: which events it judges, and the page that explains it.

A rule's module docstring is its manual page, the hover text and its test suite; see CONTRIBUTING.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradsight.model.events import Event
from gradsight.model.finding import Certainty, Finding, Related, Severity

Judgement = Callable[[Event], Finding | None]
TRAINING_CONTEXTS = ("forward", "loss", "evidence")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.  `judge` turns an event of one of `kinds` into a finding, or keeps silent."""

    code: str
    name: str
    kinds: tuple[str, ...]
    judge: Judgement
    page: str

    @property
    def summary(self) -> str:
        """The first line of the page."""
        return self.page.strip().partition("\n")[0]


def text(event: Event, name: str, default: str = "it") -> str:
    """A name the event speaks of, as a string fit for a sentence."""
    value = event.names.get(name)
    return str(value) if value not in (None, "", False) else default


def make_finding(event: Event, code: str, name: str, message: str, severity: Severity) -> Finding:
    """A finding at the event's place.

    `severity` is what a certain event on one plain path deserves.  An event that rests on an assumption is a warning in
    training code and where the program itself gives evidence for it, and information elsewhere; one that needs several independent branches is information at most.
    """
    certainty: Certainty = "assumed" if event.assumption else "certain"
    if certainty == "assumed":
        if severity in ("error", "warning"):
            severity = "warning" if event.context in TRAINING_CONTEXTS else "info"
    if event.alternatives >= 1 and severity in ("error", "warning"):
        severity = "info"
    related = tuple(
        Related(step.role, step.message, step.place.path, step.place.span()) for step in event.steps
    )
    if event.assumption:
        related += (Related("assumed", f"assumed: {event.assumption}", event.place.path, event.place.span()),)
    return Finding(
        code, name, message, severity, certainty, event.place.path, event.place.span(), related, event.assumption,
        {key: value for key, value in event.names.items() if isinstance(value, (str, int, bool))},
    )  # fmt: skip
