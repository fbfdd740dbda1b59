"""A regression target that is not constant."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = (
        f"the target {text(event, 'target', 'value')} carries a gradient of the network that is trained on it"
    )
    return make_finding(event, RULE.code, RULE.name, message, "info")


RULE = Rule("GS290", "target-not-constant", ("target-not-constant",), judge, __doc__)
