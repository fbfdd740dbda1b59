"""A graph is kept alive by a running total."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target')} keeps the graph of every {text(event, 'loss', 'loss')} alive; add its value instead"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS404", "graph-kept-alive", ("graph-kept-alive",), judge, __doc__)
