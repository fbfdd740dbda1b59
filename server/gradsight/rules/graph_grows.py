"""`retain_graph=True` with a graph that grows each iteration."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    message = (
        "retain_graph=True keeps the graphs of all earlier rounds: each backward goes through more of them"
    )
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS408", "graph-grows", ("graph-grows",), judge, __doc__)
