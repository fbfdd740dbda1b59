"""`zero_grad()` between `backward()` and `step()`."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    message = "the gradients are cleared between backward and step: the step has nothing to apply"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS502", "cleared-before-step", ("cleared-before-step",), judge, __doc__)
