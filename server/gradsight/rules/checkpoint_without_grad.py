"""A reentrant checkpoint whose inputs need no gradient."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    message = "no input of this reentrant checkpoint requires grad, so nothing inside it gets a gradient"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS211", "checkpoint-without-grad", ("checkpoint-without-grad",), judge, __doc__)
