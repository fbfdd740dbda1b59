"""One event, judged by one rule: for tests of what a rule makes of it, without a program around it."""

from __future__ import annotations

from dataclasses import dataclass

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule
from gradsight.model.source import Span


@dataclass(frozen=True, slots=True)
class FixedPlace:
    """A line of a program that nobody wrote."""

    line: int = 1
    path: str = "program.py"

    def span(self) -> Span:
        return Span(self.line, 0, self.line, 1)


def judged(rule: Rule, kind: str, *, assumption: str = "", **names: str | int | bool) -> Finding | None:
    """What a rule says about an event of a kind that it judges, in a plain function."""
    assert kind in rule.kinds
    return rule.judge(
        Event(kind, FixedPlace(), names=names, assumption=assumption, alternatives=0, context="function")
    )
