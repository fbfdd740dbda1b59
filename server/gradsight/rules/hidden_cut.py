"""`requires_grad` on a cut tensor hides the cut."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    if not (bool(event.names.get("hidden"))):
        return None
    message = f"{text(event, 'op')} cuts {text(event, 'source', 'the value')} off its history, and requires_grad only hides it: no gradient reaches what came before"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS206", "hidden-cut", ("path-cut",), judge, __doc__)
