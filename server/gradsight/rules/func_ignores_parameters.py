"""A functional transform over a function that ignores the given parameters."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"the transformed function ignores its argument {text(event, 'target')}: its gradient is zero"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS407", "func-ignores-parameters", ("func-ignores-parameters",), judge, __doc__)
