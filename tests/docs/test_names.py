"""The manual prints the one table of names that GradSight goes by."""

from __future__ import annotations

from pathlib import Path

from gradsight.model.name_hints import NAMES

PAGE = Path(__file__).parents[2] / "docs" / "how-it-thinks.md"


def test_every_name_that_counts_is_in_the_manual() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for role, words in NAMES.items():
        assert f"{role}: {words}\n" in text, f"docs/how-it-thinks.md lacks the line `{role}: {words}`"
