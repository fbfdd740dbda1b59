"""An activation before a loss that applies it."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'op')} is applied here and again inside {text(event, 'loss')}"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS605", "softmax-before-loss", ("softmax-before-loss",), judge, __doc__)
