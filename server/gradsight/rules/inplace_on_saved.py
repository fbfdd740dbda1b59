"""An in-place write destroys a value that backward still needs."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    if not (not event.names.get("by_step") and not _is_update(event)):
        return None
    message = f"{text(event, 'written')} is changed in place by {text(event, 'write')}, but {text(event, 'op')} kept its {text(event, 'what', 'value')} for backward"
    return make_finding(event, RULE.code, RULE.name, message, "error")


def _is_update(event: Event) -> bool:
    """A parameter that is updated by hand under no_grad: told as a step before backward."""
    return bool(event.names.get("is_parameter")) and event.names.get("mode") == "no_grad"


RULE = Rule("GS101", "inplace-on-saved", ("saved-overwritten",), judge, __doc__)
