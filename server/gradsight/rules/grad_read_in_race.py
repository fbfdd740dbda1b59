"""`.grad` is read while another thread may run backward."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"the gradient of {text(event, 'target', 'this tensor')} is read while another thread may still run backward"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS305", "grad-read-in-race", ("grad-read-in-race",), judge, __doc__)
