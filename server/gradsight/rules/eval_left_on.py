"""`eval()` that is never switched back."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target', 'the model')} is put into eval mode here and trained on in it"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS505", "eval-left-on", ("eval-left-on",), judge, __doc__)
