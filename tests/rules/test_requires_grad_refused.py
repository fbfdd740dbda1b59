"""GS307: what the rule makes of single events."""

from __future__ import annotations

from gradsight.rules.requires_grad_refused import RULE
from tests.rules.single_events import judged


def test_an_event_is_told_in_the_words_of_the_user() -> None:
    finding = judged(RULE, "requires-grad-refused", target="positions", reason="integer")
    assert finding is not None
    assert (finding.code, finding.severity) == ("GS307", "error")
    assert finding.message.startswith("`positions` holds integers")


def test_a_hook_is_told_by_the_name_of_its_method() -> None:
    finding = judged(RULE, "requires-grad-refused", target="batch", reason="hook", how="register_hook")
    assert finding is not None
    assert "`register_hook` raises" in finding.message
