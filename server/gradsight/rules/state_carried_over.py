"""A graph is carried from one iteration to the next."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding


def judge(event: Event) -> Finding | None:
    message = (
        "the graph of the previous round is carried into this one, where its backward has already freed it"
    )
    return make_finding(event, RULE.code, RULE.name, message, "error")


RULE = Rule("GS403", "state-carried-over", ("state-carried",), judge, __doc__)
