"""The judge of verdicts notices a verdict that torch denies."""

from __future__ import annotations

import pytest

from gradsight_dev.fuzz_verdicts import Verdicts


@pytest.mark.parametrize(
    ("verdict", "error", "wrong"),
    [
        ("confirmed", "RuntimeError: modified", 0),
        ("confirmed", "", 1),
        ("refuted", "RuntimeError: modified", 1),
        ("refuted", "", 0),
        ("undecided", "RuntimeError: modified", 0),
    ],
)
def test_a_verdict_that_torch_denies_is_wrong(verdict: str, error: str, wrong: int) -> None:
    found = Verdicts()
    found.add("one", verdict, error)
    assert len(found.wrong) == wrong
    assert found.decided == (verdict != "undecided")
