"""GS109: what the rule makes of single events."""

from __future__ import annotations

from gradsight.rules.inplace_in_transform import RULE
from tests.rules.single_events import judged


def test_an_event_is_told_in_the_words_of_the_user() -> None:
    finding = judged(RULE, "written-in-transform", here="y[0] = …", transform="vmap")
    assert finding is not None
    assert (finding.code, finding.severity) == ("GS109", "error")
    assert finding.message.startswith("`y[0] = …` writes batched values")
