"""An in-place operation that autograd records correctly."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'op')} works in place and is safe here: nothing kept the old value"
    return make_finding(event, RULE.code, RULE.name, message, "hint")


RULE = Rule("GS190", "inplace-recorded", ("inplace-recorded",), judge, __doc__)
