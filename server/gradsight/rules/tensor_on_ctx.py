"""A tensor kept on ctx instead of `save_for_backward`."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"ctx.{text(event, 'name')} keeps a tensor past autograd's version check: use save_for_backward"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS702", "tensor-on-ctx", ("tensor-on-ctx",), judge, __doc__)
