"""An optimizer is given a tensor that is not a leaf."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target', 'this tensor')} is the result of {text(event, 'op', 'an operation')}, not a leaf: an optimizer cannot take it"
    return make_finding(event, RULE.code, RULE.name, message, "error")


RULE = Rule("GS303", "non-leaf-in-optimizer", ("non-leaf-optimized",), judge, __doc__)
