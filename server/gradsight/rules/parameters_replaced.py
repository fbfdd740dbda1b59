"""An optimizer holds parameters that were replaced."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'name')} gets new parameters here, and the optimizer still holds the old ones"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS504", "parameters-replaced", ("parameters-replaced",), judge, __doc__)
