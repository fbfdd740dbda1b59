"""A gradient penalty without `create_graph`."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    if event.kind != "penalty-without-graph" and event.names.get("cut") != "grad":
        return None
    message = "the gradient computed here is a constant for the loss: without create_graph=True the penalty trains nothing"
    return make_finding(event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning")


RULE = Rule("GS405", "penalty-without-graph", ("penalty-without-graph", "backward-without-graph", "path-cut"), judge, __doc__)
