"""`.grad` of a tensor that is not a leaf."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target', 'this tensor')} is not a leaf: its .grad is None unless retain_grad() was called"
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.names.get("used") else "warning"
    )


RULE = Rule("GS301", "grad-of-non-leaf", ("grad-of-non-leaf",), judge, __doc__)
