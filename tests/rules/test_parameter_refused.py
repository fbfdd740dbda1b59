"""GS607 parameter-refused: what the rule makes of single events."""

from __future__ import annotations

from gradsight.rules.parameter_refused import RULE
from tests.rules.single_events import judged


def test_an_event_is_told_in_the_words_of_the_user() -> None:
    finding = judged(RULE, "parameter-refused", name="weight")
    assert finding is not None
    assert (finding.code, finding.severity) == ("GS607", "error")
    assert finding.message.startswith("`weight` is a parameter")
    assert finding.message.endswith("write into it under `no_grad`")


def test_a_value_with_a_graph_gets_another_name() -> None:
    finding = judged(RULE, "parameter-refused", name="weight", graph="yes")
    assert finding is not None
    assert finding.message.endswith("give the value another name")


def test_an_event_that_rests_on_an_assumption_is_worth_less() -> None:
    finding = judged(RULE, "parameter-refused", name="weight", assumption="x requires grad")
    assert finding is not None
    assert (finding.certainty, finding.severity) == ("assumed", "info")
