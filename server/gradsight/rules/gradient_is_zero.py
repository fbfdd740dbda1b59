"""An operator whose gradient is identically zero."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    if not (event.names.get("cut") == "zero"):
        return None
    message = f"the gradient of {text(event, 'op')} is zero everywhere, so {text(event, 'parameter', 'what comes before')} learns nothing through it"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS208", "gradient-is-zero", ("path-cut",), judge, __doc__)
