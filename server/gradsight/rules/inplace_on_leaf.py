"""An in-place write to a leaf that requires grad."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target')} is {_what(event)} that requires grad and cannot be written in place by {text(event, 'op')} while gradients are recorded"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def _what(event: Event) -> str:
    return "a view of a leaf" if event.names.get("view") is True else "a leaf"


RULE = Rule("GS102", "inplace-on-leaf", ("leaf-written",), judge, __doc__)
