"""A module is assigned before `super().__init__()`."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'name')} is assigned before super().__init__(): torch refuses"
    return make_finding(event, RULE.code, RULE.name, message, "error")


RULE = Rule("GS603", "before-super-init", ("before-super-init",), judge, __doc__)
