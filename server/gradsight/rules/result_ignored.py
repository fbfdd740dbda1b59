"""The result of a pure tensor method is not used."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'method')} returns a new tensor and leaves {text(event, 'target')} as it is; the result is not used"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS209", "result-ignored", ("result-ignored",), judge, __doc__)
