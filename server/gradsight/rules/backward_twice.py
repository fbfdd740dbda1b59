"""A second backward through a graph that was freed."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = (
        f"backward goes through a graph that was freed by the backward on line {text(event, 'first_line')}"
    )
    return make_finding(event, RULE.code, RULE.name, message, "error")


RULE = Rule("GS402", "backward-twice", ("backward-twice",), judge, __doc__)
