"""An operator without a gradient on the way to the loss."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    if not (event.names.get("cut") in ("op", "sample", "leaf", "none") and not event.names.get("hidden")):
        return None
    message = _message(event)
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning"
    )


def _message(event: Event) -> str:
    kind = event.names.get("cut")
    if kind in ("leaf", "none"):
        return f"{text(event, 'loss', 'the value')} was computed from tensors that need no gradient: backward has nothing to do"
    if kind == "sample":
        return "sample() carries no gradient: use rsample() or the log-probability"
    return f"{text(event, 'op')} has no gradient: nothing before it learns from this loss"


RULE = Rule("GS205", "operator-without-gradient", ("path-cut", "backward-without-graph"), judge, __doc__)
