"""`backward()` of a tensor with more than one element."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target', 'the tensor')} has shape {text(event, 'shape')}: backward needs a scalar or a gradient argument"
    return make_finding(event, RULE.code, RULE.name, message, "error")


RULE = Rule("GS401", "non-scalar-backward", ("non-scalar-backward",), judge, __doc__)
