"""An attribute that torch does not know."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"torch has no attribute {text(event, 'name')}: {text(event, 'meant')} is meant, and this line does nothing"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS602", "attribute-typo", ("attribute-typo",), judge, __doc__)
