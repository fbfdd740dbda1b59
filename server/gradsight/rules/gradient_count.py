"""A custom backward that returns the wrong number of gradients."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"backward of {text(event, 'cls')} returns {text(event, 'returned')} gradients for {text(event, 'wanted')} inputs"
    return make_finding(event, RULE.code, RULE.name, message, "error")


RULE = Rule("GS701", "gradient-count", ("gradient-count",), judge, __doc__)
