"""A gradient penalty without `create_graph`."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    message = "the gradient computed here is a constant for the loss: without create_graph=True the penalty trains nothing"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS405", "penalty-without-graph", ("penalty-without-graph",), judge, __doc__)
