"""An in-place write to one of several views, or to overlapping memory."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target')} {_why(event)} and cannot be written in place by {text(event, 'op')}"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def _why(event: Event) -> str:
    if event.names.get("reason") == "overlap":
        return f"has elements that share memory (made by {text(event, 'view')})"
    return f"is one of several views made by {text(event, 'view')}"


RULE = Rule("GS103", "inplace-on-shared-view", ("shared-view-written",), judge, __doc__)
