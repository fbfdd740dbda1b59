"""The command: bounded runs, kinds, single programs, reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradsight_dev.fuzz.__main__ import main


def test_a_run_prints_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "30", "--seed", "5", "--torch-only"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("30 programs")
    assert "verdicts: " in printed


def test_one_kind_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--count", "10", "--kinds", "recurrent", "--torch-only"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("recurrent")]
    assert rows[0][1] == "10"


def test_an_unknown_kind_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "1", "--kinds", "poetry"]) == 2
    assert "poetry" in capsys.readouterr().err


def test_one_program_is_shown_with_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--program", "3", "--torch-only"]) == 0
    printed = capsys.readouterr().out
    assert "   1 import" in printed
    assert "torch: " in printed


def test_a_report_is_plain_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.json"
    main(["--count", "10", "--torch-only", "--report", str(target)])
    data = json.loads(target.read_text())
    assert data["programs"] == 10
    assert sum(data["verdicts"].values()) == 10


def test_jobs_give_the_same_counts(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--count", "20", "--seed", "77", "--torch-only"])
    alone = capsys.readouterr().out.splitlines()[1:]
    main(["--count", "20", "--seed", "77", "--torch-only", "--jobs", "2"])
    assert capsys.readouterr().out.splitlines()[1:] == alone
