"""A backward or hook that edits the gradient in place."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'name')} is edited in place here: return a new gradient instead"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS704", "gradient-edited", ("gradient-edited",), judge, __doc__)
