"""`.grad` is used while it is None."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"the gradient of {text(event, 'target', 'this tensor')} is None here: {_why(event)}"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def _why(event: Event) -> str:
    return "it was cleared" if event.names.get("cause") == "cleared" else "no backward has filled it yet"


RULE = Rule("GS304", "grad-is-none", ("grad-is-none",), judge, __doc__)
