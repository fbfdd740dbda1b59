"""A custom forward that changes its input without `mark_dirty`."""

from __future__ import annotations

from gradsight.model.events import Event
from gradsight.model.finding import Finding
from gradsight.model.rule import Rule, make_finding, text


def judge(event: Event) -> Finding | None:
    message = f"forward of {text(event, 'cls')} changes {text(event, 'target', 'its input')} in place without ctx.mark_dirty"
    return make_finding(event, RULE.code, RULE.name, message, "warning")


RULE = Rule("GS703", "dirty-not-marked", ("dirty-not-marked",), judge, __doc__)
