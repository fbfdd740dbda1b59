"""GS705: what the rule makes of single events."""

from __future__ import annotations

from gradsight.rules.saved_written_in_backward import RULE
from tests.rules.single_events import judged


def test_an_event_is_told_in_the_words_of_the_user() -> None:
    finding = judged(RULE, "saved-written-in-backward", name="right", cls="Product", shared=True)
    assert finding is not None
    assert (finding.code, finding.severity) == ("GS705", "warning")
    assert (
        finding.message
        == "`Product.backward` overwrites `right`, which `forward` saved, and the program still uses it: write to a copy"
    )
