"""A kept `.grad` that is overwritten later."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"this keeps the gradient of {text(event, 'target', 'the tensor')} itself, not a copy; {text(event, 'write')} changes it before it is read"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS302", "grad-alias", ("grad-alias-overwritten",), judge, __doc__)
