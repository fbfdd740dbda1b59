"""A round trip through Python numbers or NumPy on the way to the loss."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    if not (event.names.get("cut") in ("number", "numpy") and not event.names.get("hidden")):
        return None
    message = f"{text(event, 'op')} turns {text(event, 'source', 'the value')} into a plain number or array: no gradient flows back from here"
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning"
    )


RULE = Rule("GS202", "number-round-trip", ("path-cut", "backward-without-graph", "term-cut"), judge, __doc__)
