"""The judge of verdicts notices a verdict that torch denies, and a few random programs get true ones."""

from __future__ import annotations

import pytest

from gradsight_dev.fuzz_verdicts import Happens, Verdicts, campaign


@pytest.mark.parametrize(
    ("verdict", "happens", "wrong"),
    [
        ("confirmed", "yes", 0),
        ("confirmed", "no", 1),
        ("refuted", "yes", 1),
        ("refuted", "no", 0),
        ("refuted", "unknown", 0),
        ("undecided", "yes", 0),
    ],
)
def test_a_verdict_that_torch_denies_is_wrong(verdict: str, happens: Happens, wrong: int) -> None:
    found = Verdicts()
    found.add("one", "GS101", [verdict], happens)
    assert len(found.wrong) == wrong
    assert found.decided == (verdict != "undecided")


def test_a_few_random_programs_get_true_verdicts() -> None:
    found = campaign(9_000_000, 8)
    assert found.programs == 8
    assert found.wrong == []
    assert found.decided > 0
