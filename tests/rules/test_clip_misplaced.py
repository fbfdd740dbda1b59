"""What GS513 makes of single events; whole programs are on its page."""

from __future__ import annotations

from gradsight.rules.clip_misplaced import RULE
from tests.rules.single_events import judged


def test_a_late_clip_and_an_early_one_are_told_apart() -> None:
    late, early = (judged(RULE, "clip-misplaced", how=how) for how in ("late", "early"))
    assert late is not None
    assert early is not None
    assert late.message.startswith("gradients are clipped after `step()`")
    assert early.message.startswith("gradients are clipped before they exist")
