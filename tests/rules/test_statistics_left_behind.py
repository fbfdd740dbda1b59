"""GS519 statistics-left-behind: what the rule makes of single events."""

from __future__ import annotations

from gradsight.rules.statistics_left_behind import RULE
from tests.rules.single_events import judged


def test_an_event_is_told_in_the_words_of_the_user() -> None:
    finding = judged(RULE, "statistics-left")
    assert finding is not None
    assert (finding.code, finding.severity) == ("GS519", "warning")
    assert "buffers" in finding.message


def test_an_event_that_rests_on_an_assumption_is_worth_less() -> None:
    finding = judged(RULE, "statistics-left", assumption="x requires grad")
    assert finding is not None
    assert (finding.certainty, finding.severity) == ("assumed", "info")
