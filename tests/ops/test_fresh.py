"""The committed table and its report are what the generator writes today."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPORT = Path(__file__).parents[2] / "docs" / "facts-report.md"


@pytest.mark.facts
def test_table_and_report_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gradsight_dev.facts", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_difference_between_sources_has_a_reason() -> None:
    rows = [line for line in REPORT.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert rows
    assert [row for row in rows if not re.fullmatch(r"\| `[^|]+` \| [^|]+ \| [^|]*\w[^|]* \|", row)] == []
