"""GS520 gradients-applied-twice: what the rule makes of single events."""

from __future__ import annotations

from gradsight.rules.gradients_applied_twice import RULE
from tests.rules.single_events import judged


def test_an_event_is_told_in_the_words_of_the_user() -> None:
    finding = judged(RULE, "gradients-applied-twice", parameter="weight", how="shared")
    assert finding is not None
    assert (finding.code, finding.severity) == ("GS520", "warning")
    assert "weight" in finding.message


def test_an_event_that_rests_on_an_assumption_is_worth_less() -> None:
    finding = judged(RULE, "gradients-applied-twice", assumption="x requires grad")
    assert finding is not None
    assert (finding.certainty, finding.severity) == ("assumed", "info")
