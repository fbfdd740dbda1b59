"""GS609 loss-broadcast: what the rule makes of single events."""

from __future__ import annotations

from gradsight.rules.loss_broadcast import RULE
from tests.rules.single_events import judged


def test_an_event_is_told_in_the_words_of_the_user() -> None:
    finding = judged(RULE, "loss-broadcast", target="net(x)", source="y")
    assert finding is not None
    assert (finding.code, finding.severity) == ("GS609", "warning")
    assert "`net(x)` and `y`" in finding.message


def test_an_event_that_rests_on_an_assumption_is_worth_less() -> None:
    finding = judged(RULE, "loss-broadcast", assumption="x requires grad")
    assert finding is not None
    assert (finding.certainty, finding.severity) == ("assumed", "info")
