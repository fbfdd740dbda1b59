"""The forward pass ran without grad mode."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    if not (event.names.get("cut") in ("no_grad", "inference") and not event.names.get("hidden")):
        return None
    message = f"the forward pass runs without grad mode here, so backward finds no graph{_starved(event)}"
    return make_finding(
        event, RULE.code, RULE.name, message, "error" if event.kind == "backward-without-graph" else "warning"
    )


def _starved(event: Event) -> str:
    name = event.names.get("parameter")
    return f": {name} gets no gradient" if name else ""


RULE = Rule(
    "GS204", "forward-without-grad", ("path-cut", "backward-without-graph", "term-cut"), judge, __doc__
)
