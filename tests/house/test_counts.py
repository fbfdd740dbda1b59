"""The counts that continuous integration prints are those of the reports, and no report means no success."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.house.tree import ROOT

PASSED = '<testcase name="works"/>'
FAILED = '<testcase name="breaks"><failure>why</failure></testcase>'


def test_passed_and_failed_are_added_up_over_the_reports(tmp_path: Path) -> None:
    check(tmp_path, {"client": PASSED, "python": PASSED + FAILED}, 1, "total: 2 passed, 1 failed, 0 skipped")


def test_all_passed_is_success(tmp_path: Path) -> None:
    check(tmp_path, {"client": PASSED, "python": PASSED}, 0, "total: 2 passed, 0 failed, 0 skipped")


def test_a_missing_report_is_no_success(tmp_path: Path) -> None:
    check(tmp_path, {"client": PASSED, "python": None}, 1, "python: 0 passed, 0 failed, 0 skipped")


def test_a_report_without_tests_is_no_success(tmp_path: Path) -> None:
    check(tmp_path, {"client": "", "python": PASSED}, 1, "client: 0 passed, 0 failed, 0 skipped")


def check(folder: Path, reports: dict[str, str | None], code: int, line: str) -> None:
    """These reports end with this code, and this line is among what is printed."""
    for name, cases in reports.items():
        if cases is not None:
            (folder / f"{name}.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    paths = [str(folder / f"{name}.xml") for name in reports]
    outcome = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "counts.py"), *paths], capture_output=True, text=True, check=False
    )
    assert outcome.returncode == code
    assert line in outcome.stdout.splitlines()
