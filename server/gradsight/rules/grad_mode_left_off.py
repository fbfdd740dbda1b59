"""Grad mode is switched off and not restored."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    if event.kind == "backward-without-graph" and event.names.get("cut") != "left-off":
        return None
    message = "grad mode is switched off here and stays off on some path"
    return make_finding(event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning")


RULE = Rule("GS210", "grad-mode-left-off", ("grad-mode-left-off", "backward-without-graph"), judge, __doc__)
