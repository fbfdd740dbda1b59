"""`detach()` or `.data` on the only way to the loss."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    if not (event.names.get("cut") in ("detach", "data") and not event.names.get("hidden")):
        return None
    message = f"{text(event, 'op')} cuts {text(event, 'source', 'the value')} off its history on the way to the loss{_starved(event)}"
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning"
    )


def _starved(event: Event) -> str:
    name = event.names.get("parameter")
    return f": {name} gets no gradient" if name else ""


RULE = Rule("GS203", "detached-from-loss", ("path-cut", "backward-without-graph", "term-cut"), judge, __doc__)
