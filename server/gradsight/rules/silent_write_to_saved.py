"""A write through `.data` or NumPy changes a value that backward needs, unnoticed."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    if event.names.get("by_step"):
        return None
    message = f"{text(event, 'write')} changes {text(event, 'target', 'a tensor')}, which {text(event, 'op')} kept for backward; torch does not notice and the gradient is wrong"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS104", "silent-write-to-saved", ("saved-changed-silently",), judge, __doc__)
