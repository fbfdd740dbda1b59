"""A write through one name changes a value that is read later under another."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = _message(event)
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def _message(event: Event) -> str:
    how = event.names.get("how")
    name = text(event, "target", "the value")
    if how == "list":
        return f"every stored entry is {name} itself: this in-place write changes them all"
    if how == "name":
        return f"{text(event, 'alias')} and {name} are one tensor: this in-place write changes {name} too, which is read later"
    if how == "argument":
        return f"this changes the caller's {name} too, which is read again after the call"
    if how == "source":
        return f"{text(event, 'alias')} shares memory with {name}: this write changes {name} too, which is read later"
    return f"{text(event, 'alias')} is not a copy: it changes with its source before it is read"


RULE = Rule("GS107", "alias-of-changed-value", ("alias-read-after-write",), judge, __doc__)
