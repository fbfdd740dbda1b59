"""Modules or parameters that the module does not know of."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = _message(event)
    return make_finding(event, RULE.code, RULE.name, message, "warning")


def _message(event: Event) -> str:
    name, container = text(event, "name"), text(event, "container")
    if container == "tensor":
        return f"{name} requires grad but is no nn.Parameter: parameters() does not list it"
    return f"{name} is a plain {container}: the {text(event, 'what')}s in it are not in parameters()"


RULE = Rule("GS601", "not-registered", ("not-registered",), judge, __doc__)
