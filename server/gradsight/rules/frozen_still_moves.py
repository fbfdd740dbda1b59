"""A frozen parameter that its optimizer still moves."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'parameter', 'the parameter')} is frozen here, but its optimizer still moves it (old gradient, momentum or weight decay)"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS509", "frozen-still-moves", ("frozen-still-moves",), judge, __doc__)
