"""`autograd.grad` of a tensor that the output does not depend on."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"{text(event, 'target', 'the input')} is not part of the graph of the output, so autograd.grad refuses"
    return make_finding(event, RULE.code, RULE.name, message, "error")


RULE = Rule("GS406", "grad-of-unused", ("grad-of-unused",), judge, __doc__)
