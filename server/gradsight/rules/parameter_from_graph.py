"""`nn.Parameter` around a tensor of the graph."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    if not (event.names.get("cut") == "parameter" and not event.names.get("hidden")):
        return None
    message = f"nn.Parameter makes a new leaf from {text(event, 'source', 'a computed value')}: no gradient flows back through it"
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning"
    )


RULE = Rule("GS207", "parameter-from-graph", ("path-cut", "backward-without-graph"), judge, __doc__)
