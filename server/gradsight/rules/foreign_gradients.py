"""One network's backward leaves gradients in another."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"this backward also leaves gradients in {text(event, 'parameter', 'the other network')}, which are not cleared before its own step"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS508", "foreign-gradients", ("foreign-gradients",), judge, __doc__)
