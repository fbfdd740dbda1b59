"""GS511 scaler-misused: what the rule makes of single events."""

from __future__ import annotations

from gradsight.rules.scaler_misused import RULE
from tests.rules.single_events import judged


def test_a_step_past_the_scaler_is_a_warning_and_a_missing_update_an_error() -> None:
    past = judged(RULE, "scaler-misused", how="step")
    missing = judged(RULE, "scaler-misused", how="update")
    assert past is not None
    assert missing is not None
    assert (past.severity, missing.severity) == ("warning", "error")
    assert "scaler.update()" in missing.message


def test_a_missing_update_of_a_scaler_that_may_be_off_is_a_warning() -> None:
    finding = judged(RULE, "scaler-misused", how="update", assumption="the gradient scaler is enabled")
    assert finding is not None
    assert (finding.certainty, finding.severity) == ("assumed", "warning")
