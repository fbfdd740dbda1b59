"""`deepcopy` of a tensor that is not a leaf."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target', 'a tensor inside')} is not a leaf, and deepcopy refuses it"
    return make_finding(event, RULE.code, RULE.name, message, "error")


RULE = Rule("GS306", "deepcopy-of-non-leaf", ("non-leaf-copied",), judge, __doc__)
