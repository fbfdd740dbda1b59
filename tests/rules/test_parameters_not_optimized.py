"""GS512 parameters-not-optimized: what the rule makes of single events."""

from __future__ import annotations

from gradsight.rules.parameters_not_optimized import RULE
from tests.rules.single_events import judged


def test_an_event_is_told_in_the_words_of_the_user() -> None:
    finding = judged(RULE, "parameters-not-optimized", parameters="decoder")
    assert finding is not None
    assert (finding.code, finding.severity) == ("GS512", "warning")
    assert "decoder" in finding.message


def test_an_event_that_rests_on_an_assumption_is_worth_less() -> None:
    finding = judged(RULE, "parameters-not-optimized", assumption="x requires grad")
    assert finding is not None
    assert (finding.certainty, finding.severity) == ("assumed", "info")


def test_an_optimizer_that_never_steps_is_named() -> None:
    finding = judged(RULE, "optimizer-never-stepped", optimizer="generator_optimizer")
    assert finding is not None
    assert finding.message.startswith("`generator_optimizer` is never stepped")
