"""A tensor of the graph is written under no_grad, and its gradient does not know."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target')} is written by {text(event, 'op')} without grad mode: its value changes and its gradient does not"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS105", "write-without-grad", ("graph-written-without-grad",), judge, __doc__)
