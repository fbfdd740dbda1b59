"""A parameter is updated between a forward pass and its backward."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    if not (bool(event.names.get("by_step")) or _is_update(event)):
        return None
    message = _message(event)
    return make_finding(
        event, RULE.code, RULE.name, message, "warning" if event.kind == "saved-changed-silently" else "error"
    )


def _is_update(event: Event) -> bool:
    """A parameter that is updated by hand under no_grad."""
    return bool(event.names.get("is_parameter")) and event.names.get("mode") == "no_grad"


def _message(event: Event) -> str:
    subject = text(event, "target", "a parameter")
    if event.kind == "saved-changed-silently":
        return f"this step changes {subject}, which {text(event, 'op')} kept for a later backward; torch does not notice and the gradient is wrong"
    return f"this step changes {subject}, which {text(event, 'op')} kept for a backward that comes later"


RULE = Rule("GS106", "step-before-backward", ("saved-overwritten", "saved-changed-silently"), judge, __doc__)
