"""GS212 gradient-is-nan: what the rule makes of single events."""

from __future__ import annotations

from gradsight.rules.gradient_is_nan import RULE
from tests.rules.single_events import judged


def test_an_event_is_told_in_the_words_of_the_user() -> None:
    finding = judged(RULE, "gradient-is-nan", target="weight")
    assert finding is not None
    assert (finding.code, finding.severity) == ("GS212", "warning")
    assert "weight" in finding.message


def test_an_event_that_rests_on_an_assumption_is_worth_less() -> None:
    finding = judged(RULE, "gradient-is-nan", assumption="x requires grad")
    assert finding is not None
    assert (finding.certainty, finding.severity) == ("assumed", "info")
