"""Engine and torch agree: on a bounded run of fresh programs, and on every program that once divided them."""

from __future__ import annotations

import pytest

from gradsight_dev.fuzz.campaign import run_campaign
from gradsight_dev.fuzz.case import weigh
from gradsight_dev.fuzz.keep import Kept, claim_of, kept_programs
from gradsight_dev.fuzz.oracle import judge
from gradsight_dev.fuzz.summary import as_text, summarise

pytestmark = pytest.mark.facts

FIRST_SEED = 700_000
PROGRAMS = 400


def test_engine_agrees_with_torch_on_fresh_programs() -> None:
    """No crash, no alarm on an exact program, and enough failures found on causing lines."""
    summary = summarise(run_campaign(FIRST_SEED, PROGRAMS))
    assert not summary.crashes, summary.crashes[0].crash
    assert summary.meets_bars, as_text(summary, with_engine=True)


@pytest.mark.parametrize("kept", kept_programs(), ids=lambda kept: kept.path.stem)
def test_kept_program_is_what_torch_says(kept: Kept) -> None:
    assert claim_of(judge(kept.text)) == kept.claim


@pytest.mark.parametrize("kept", kept_programs(), ids=lambda kept: kept.path.stem)
def test_kept_program_no_longer_divides(kept: Kept) -> None:
    comparison, crash = weigh(kept.text, kept.path.name, judge(kept.text))
    assert not crash, crash
    assert comparison is not None
    assert comparison.result in ("agrees", "unjudged"), comparison.detail
