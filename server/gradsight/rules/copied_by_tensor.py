"""`torch.tensor(t)` copies a value out of the graph."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    if not (event.names.get("cut") == "copy" and not event.names.get("hidden")):
        return None
    message = f"torch.tensor copies {text(event, 'source', 'its values')} out of the graph: no gradient flows back from here"
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning"
    )


RULE = Rule("GS201", "copied-by-tensor", ("path-cut", "backward-without-graph", "term-cut"), judge, __doc__)
