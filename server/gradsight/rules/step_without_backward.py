"""`step()` that no `backward()` precedes."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    message = "no backward comes before this step: there is no gradient to apply"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS503", "step-without-backward", ("step-without-backward",), judge, __doc__)
