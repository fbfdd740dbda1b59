"""GS409: what the rule makes of single events."""

from __future__ import annotations

from gradsight.rules.gradient_refused import RULE
from tests.rules.single_events import judged


def test_an_event_is_told_in_the_words_of_the_user() -> None:
    finding = judged(
        RULE, "gradient-refused", target="rows", reason="shape", how="backward", given="[3, 2]", wanted="[3]"
    )
    assert finding is not None
    assert (finding.code, finding.severity) == ("GS409", "error")
    assert finding.message == "a gradient of shape [3, 2] does not fit `rows`, which has shape [3]"


def test_a_number_of_gradients_is_told() -> None:
    finding = judged(RULE, "gradient-refused", reason="count", how="autograd.grad", given="1", wanted="2")
    assert finding is not None
    assert finding.message == "`autograd.grad` got 1 gradient for 2 outputs"
