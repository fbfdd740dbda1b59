"""No `zero_grad()` in the training loop."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    message = "gradients are never cleared in this loop: each step uses the sum over all rounds so far"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS501", "gradients-never-cleared", ("gradients-never-cleared",), judge, __doc__)
