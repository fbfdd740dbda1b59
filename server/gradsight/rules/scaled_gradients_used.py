"""Clipping or reading gradients before `unscale_`."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    message = "the gradients are still scaled here: call scaler.unscale_(optimizer) before clipping"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS507", "scaled-gradients-used", ("scaled-gradients-used",), judge, __doc__)
