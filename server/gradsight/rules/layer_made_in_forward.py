"""A layer that is created in `forward`."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'layer')} is made anew in every forward pass: its parameters are never trained"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS604", "layer-made-in-forward", ("layer-made-in-forward",), judge, __doc__)
