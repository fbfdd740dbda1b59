"""Snapshots of what the engine says: complete, repeatable, and compared to the last word."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradsight_dev.compare_reports
from gradsight_dev.compare_reports import snapshots
from gradsight_dev.compare_reports.command import main
from gradsight_dev.compare_reports.corpora import Item
from gradsight_dev.compare_reports.recording import Record, Recorder
from gradsight_dev.compare_reports.workers import records_of
from tests.house.tree import SERVER

RAISES = """\
import torch
x = torch.ones(3, requires_grad=True)
y = torch.exp(x)
y *= 2
y.sum().backward()
"""
Finding = dict[str, Any]
COMMAND = Path(gradsight_dev.compare_reports.__file__).parent / "__main__.py"


def test_a_finding_is_kept_with_its_trail(tmp_path: Path) -> None:
    record = saved(tmp_path, "one", {"a.py": RAISES})["project/a.py"]
    (finding,) = record["findings"]
    assert (finding["code"], finding["severity"], finding["span"][0]) == ("GS101", "error", 4)
    assert finding["path"] == "project/a.py"
    assert {(role, line) for role, _, _, line in finding["related"]} >= {("saved", 3), ("needed", 5)}


def test_a_finding_in_an_imported_file_names_that_file(tmp_path: Path) -> None:
    helper = "import torch\ndef scaled(x):\n    y = torch.exp(x)\n    y *= 2\n    return y\n"
    script = "import torch\nfrom helper import scaled\nx = torch.ones(3, requires_grad=True)\nscaled(x).sum().backward()\n"
    record = saved(tmp_path, "one", {"helper.py": helper, "script.py": script})["project/script.py"]
    assert {finding["path"] for finding in record["findings"]} == {"project/helper.py"}


def test_the_same_reports_do_not_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(tmp_path, "one", {"a.py": RAISES})
    saved(tmp_path, "two", {"a.py": RAISES})
    assert compared(tmp_path, capsys) == (0, [])


def test_a_finding_that_appears_is_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(saved(tmp_path, "one", {"a.py": RAISES}), tmp_path / "one", lambda finding: None)
    saved(tmp_path, "two", {"a.py": RAISES})
    code, lines = compared(tmp_path, capsys)
    assert code == 1
    assert lines[0] == "GS101 error: 1 new"
    assert lines[1].startswith("  new     project/a.py:4:0  certain: ")


def test_a_finding_that_is_lost_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(saved(tmp_path, "two", {"a.py": RAISES}), tmp_path / "two", lambda finding: None)
    saved(tmp_path, "one", {"a.py": RAISES})
    assert compared(tmp_path, capsys, "--brief") == (1, ["GS101 error: 1 gone"])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("severity", "info"),
        ("certainty", "assumed"),
        ("message", "another sentence"),
        ("assumption", "x is a tensor"),
        ("related", []),
        ("span", [4, 0, 4, 1]),
    ],
)
def test_every_part_of_a_finding_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, value: object
) -> None:
    changed(
        saved(tmp_path, "one", {"a.py": RAISES}), tmp_path / "one", lambda finding: finding | {key: value}
    )
    saved(tmp_path, "two", {"a.py": RAISES})
    code, lines = compared(tmp_path, capsys)
    assert code == 1
    assert f"{key}: " in lines[1]


def test_a_program_whose_text_changed_is_not_compared_finding_by_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved(tmp_path, "one", {"a.py": RAISES})
    saved(tmp_path, "two", {"a.py": "\n" + RAISES})
    assert compared(tmp_path, capsys, "--brief") == (1, ["programs: 1 changed"])


def test_a_program_in_one_snapshot_only_is_told_unless_the_common_ones_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved(tmp_path, "one", {"a.py": RAISES})
    saved(tmp_path, "two", {"a.py": RAISES, "b.py": RAISES})
    assert compared(tmp_path, capsys, "--brief") == (1, ["programs: 1 new"])
    assert compared(tmp_path, capsys, "--common") == (0, [])


def test_a_file_that_cannot_be_read_is_recorded_as_such(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_bytes(b"import torch\nx = '\xff'\n")
    record = Recorder()(Item("odd.py", file=tmp_path / "odd.py", base=tmp_path))
    assert record["findings"] == []
    assert "utf-8" in record["failed"]


def test_a_failure_of_the_engine_is_recorded_and_the_rest_goes_on() -> None:
    class Odd(Recorder):
        def _fill(self, record: Record, item: Item) -> None:
            if item.name == "odd":
                raise RecursionError("too deep")
            super()._fill(record, item)

    odd, even = records_of([Item("odd", text=RAISES), Item("even", text=RAISES)], Odd)
    assert "too deep" in odd["failed"]
    assert not even["failed"]
    assert len(even["findings"]) == 1


def test_a_program_that_brings_the_process_down_costs_only_itself() -> None:
    class Deadly(Recorder):
        def _fill(self, record: Record, item: Item) -> None:
            if item.name == "deadly":
                os._exit(9)
            super()._fill(record, item)

    deadly, other = records_of([Item("deadly", text=RAISES), Item("other", text=RAISES)], Deadly)
    assert deadly["failed"] == "the process that analysed it ended with code 9"
    assert len(other["findings"]) == 1


def test_generated_programs_are_the_same_every_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        assert main(["save", str(tmp_path / name), "--corpus", "fuzz", "20", "7"]) == 0
    capsys.readouterr()
    assert len(snapshots.read(tmp_path / "one")) == 20
    assert compared(tmp_path, capsys) == (0, [])


def test_fixtures_are_the_default_and_can_be_thinned_out(tmp_path: Path) -> None:
    main(["save", str(tmp_path / "some"), "--every", "200"])
    names = snapshots.read(tmp_path / "some").keys()
    assert 1 < len(names) < 50
    assert all(name.startswith("fixtures/") for name in names)


def test_an_unknown_corpus_is_a_wrong_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["save", str(tmp_path / "one"), "--corpus", "poems"]) == 2
    assert "there are: fixtures" in capsys.readouterr().err
    assert main(["save", str(tmp_path / "one"), "--corpus", "packages", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_called_by_its_path_it_asks_the_engine_that_is_first_on_the_path(tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "gradsight_dev").mkdir(parents=True)
    (other / "gradsight_dev" / "__init__.py").write_text("")
    (other / "gradsight").symlink_to(SERVER / "gradsight")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text(RAISES)
    called = [
        sys.executable,
        str(COMMAND),
        "save",
        str(tmp_path / "one"),
        "--corpus",
        "packages",
        str(folder),
    ]
    outcome = subprocess.run(
        called, env={**os.environ, "PYTHONPATH": str(other)}, capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stderr
    assert len(snapshots.read(tmp_path / "one")["project/a.py"]["findings"]) == 1


def saved(tmp_path: Path, name: str, files: dict[str, str]) -> dict[str, Record]:
    """The snapshot `name` of a project with these files."""
    folder = tmp_path / f"{name}_corpus" / "project"
    folder.mkdir(parents=True)
    for file, text in files.items():
        (folder / file).write_text(text)
    assert main(["save", str(tmp_path / name), "--corpus", "packages", str(folder)]) == 0
    return snapshots.read(tmp_path / name)


def changed(records: dict[str, Record], path: Path, change: Callable[[Finding], Finding | None]) -> None:
    """Write a snapshot again with each finding changed, or left out where the change gives None."""
    for record in records.values():
        record["findings"] = [new for old in record["findings"] if (new := change(old)) is not None]
    snapshots.write(path, "", records.values())


def compared(tmp_path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[str]]:
    """The exit code and the lines of comparing the snapshots `one` and `two`."""
    capsys.readouterr()
    code = main(["compare", str(tmp_path / "one"), str(tmp_path / "two"), *options])
    return code, capsys.readouterr().out.splitlines()
