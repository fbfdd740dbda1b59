"""A scheduler that steps before its optimizer."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    message = "the scheduler steps before the optimizer: the first learning rate is skipped"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS506", "scheduler-first", ("scheduler-first",), judge, __doc__)
