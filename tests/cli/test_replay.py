"""The same check again: repeated word for word while nothing changed, and never when something did."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gradsight
from gradsight.cli import main, replay
from gradsight.session import disk

FAILS = """import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= 3
y.sum().backward()
"""
FINE = FAILS.replace("y *= 3", "z = y*3")[: len(FAILS)].ljust(len(FAILS), "\n")
USES = """import torch
from nets.part import scaled

y = torch.ones(3, requires_grad=True).exp()
scaled(y).sum().backward()
"""
PART = "import torch\n\n\ndef scaled(value):\n    value *= 2\n    return value\n"
PART_FINE = PART.replace("*= 2", "= value * 2")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with a fault in it, and one in what it imports; no refreshed facts."""
    folder = tmp_path / "project"
    write(folder / "pyproject.toml", "[project]\nname = 'p'\n")
    write(folder / "train.py", FAILS)
    write(folder / "nets" / "part.py", PART)
    write(folder / "use.py", USES)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GRADSIGHT_CACHE", raising=False)
    monkeypatch.setenv("GRADSIGHT_CACHE_DIR", str(tmp_path / "facts"))
    return folder


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command as the shell does: whether it was only repeated, the exit code, the output and the complaints."""

    def run(*options: str) -> tuple[bool, int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gradsight", "check", *options])
        replays = []
        answer = replay.answer

        def noted(words: list[str]) -> int | None:
            replays.append(answer(words))
            return replays[-1]

        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.setattr(replay, "answer", noted)
            code = main()
        said = capsys.readouterr()
        return bool(replays) and replays[0] is not None, code, said.out, said.err

    return run


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def settle() -> None:
    """Let files grow older than the tick of the file system."""
    time.sleep(2.2 if Path("train.py").stat().st_mtime_ns % disk.MILLISECOND == 0 else 0.1)


def test_a_check_of_what_did_not_change_says_the_same_again(check: Any) -> None:
    settle()
    first = check()
    second = check()
    assert (first[0], second[0]) == (False, True)
    assert first[1:] == second[1:]
    assert first[1] == 1
    assert "train.py:5:1" in first[2]
    assert "nets/part.py:5" in first[2]


def test_each_way_to_call_is_kept_for_itself(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settle()
    text, table = check(), check("--format", "json")
    assert (check()[2], check("--format", "json")[2]) == (text[2], table[2])
    assert check("train.py")[0] is False
    monkeypatch.chdir("nets")
    assert check()[0] is False


def restore_times(path: Path, text: str) -> None:
    """Another text of the same length with the old times, as some tools leave it."""
    before = path.stat()
    assert len(text) == before.st_size
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "an edit": lambda project: write(project / "train.py", FINE + "\n"),
    "an edit that keeps length and time": lambda project: restore_times(project / "train.py", FINE),
    "an import that changed": lambda project: write(project / "nets" / "part.py", PART_FINE),
    "a package that appears": lambda project: write(project / "nets" / "part" / "__init__.py", PART_FINE),
    "a new file": lambda project: write(project / "nets" / "more.py", FAILS),
    "a file that is gone": lambda project: (project / "train.py").unlink(),
    "a file that moved": lambda project: (project / "train.py").rename(project / "nets" / "train.py"),
    "an ignore file": lambda project: write(project / ".gitignore", "train.py\n"),
    "an ignore file below": lambda project: write(project / "nets" / ".gitignore", "*\n"),
    "an environment": lambda project: write(project / "nets" / "pyvenv.cfg", ""),
    "a setting": lambda project: write(
        project / "pyproject.toml", "[project]\nname = 'p'\n[tool.gradsight]\nignore = ['GS1']\n"
    ),
    "a nearer project": lambda project: write(project.parent / "pyproject.toml", "[tool.gradsight]\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(check: Any, project: Path, change: str) -> None:
    settle()
    check()
    assert check()[0] is True
    CHANGES[change](project)
    again = check()
    assert again[0] is False
    assert again[1:] == check("--no-cache")[1:]


def test_another_baseline_is_seen(check: Any, project: Path) -> None:
    check("--baseline", "known.json", "--write-baseline")
    settle()
    assert check("--baseline", "known.json")[1] == 0
    write(project / "known.json", '{"version": 1, "findings": []}')
    assert check("--baseline", "known.json")[1] == 1


def test_another_environment_is_seen(check: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settle()
    check()
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONUTF8", "1")
        assert check()[0] is False
    assert check()[0] is True
    write(tmp_path / "facts" / "facts-2.13.0.txt", "refreshed")
    assert check()[0] is False


def test_another_engine_is_seen(check: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in = tmp_path / "engine" / "rule.py"
    write(stand_in, "RULE = 1\n")
    settle()
    monkeypatch.setattr(replay.gradsight, "__file__", str(tmp_path / "engine" / "__init__.py"))
    check()
    assert check()[0] is True
    write(stand_in, "RULE = 2\n")
    assert check()[0] is False


def test_files_that_may_change_unseen_are_not_relied_on(check: Any, project: Path) -> None:
    now = time.time_ns() + 10 * disk.COARSE_TICK
    os.utime(project / "train.py", ns=(now, now))
    check()
    assert check()[0] is False


def test_what_is_said_besides_findings_is_said_each_time(check: Any, project: Path) -> None:
    write(project / "odd.py", "# coding: nonsense\nimport torch\n")
    settle()
    first = check()
    assert "nonsense" in first[3]
    assert check() == first


@pytest.mark.parametrize("options", [("--no-cache",), ("--diff", "HEAD"), ("--diff=HEAD",), ("-",)])
def test_calls_that_depend_on_more_than_files_are_not_kept(options: tuple[str, ...]) -> None:
    assert not replay.is_repeatable(["check", *options])


def test_a_terminal_gets_its_own_output(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    settle()
    plain = check()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    painted, again = check(), check()
    assert (plain[0], painted[0], again[0]) == (False, False, True)
    assert "\x1b[" in painted[2]
    assert "\x1b[" not in plain[2]
    assert painted[1:] == again[1:]


@pytest.mark.parametrize("damage", [b"", b"\0", b"\xff\xfe", b"0\0gradsight run 1\0", "cut"])
def test_a_damaged_run_is_ignored(check: Any, damage: bytes | str) -> None:
    settle()
    first = check()
    (kept,) = Path(".gradsight_cache").glob("run-*")
    kept.write_bytes(kept.read_bytes()[:-20] if isinstance(damage, str) else damage)
    again = check()
    assert again[0] is False
    assert again[1:] == first[1:]


def test_old_runs_are_forgotten(check: Any) -> None:
    settle()
    for number in range(replay.MOST_RUNS + 3):
        check("--jobs", str(number + 1))
    assert len(list(Path(".gradsight_cache").glob("run-*"))) == replay.MOST_RUNS


def test_runs_are_kept_where_the_variable_says(
    check: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRADSIGHT_CACHE", str(tmp_path / "elsewhere"))
    settle()
    check()
    assert check()[0] is True
    assert not Path(".gradsight_cache").exists()


def test_any_row_of_changes_ends_in_what_a_fresh_check_says(check: Any, project: Path) -> None:
    draw = random.Random(7)
    texts = (FAILS, FINE, PART, PART_FINE, USES)
    files = [project / name for name in ("train.py", "use.py", "nets/part.py", "nets/more.py", "lib/part.py")]
    repeated = 0
    for _ in range(25):
        for _ in range(draw.choice((0, 0, 1, 2))):
            path = draw.choice(files)
            if path.exists() and draw.random() < 0.3:
                path.unlink()
            else:
                write(path, draw.choice(texts))
        if draw.random() < 0.5:
            time.sleep(0.06)
        was_repeated, *said = check()
        repeated += was_repeated
        assert said == list(check("--no-cache")[1:])
    assert repeated > 0


def test_engine_files_are_those_of_the_package() -> None:
    package = Path(gradsight.__file__).parent
    files = disk.files_below(str(package), replay.ENGINE_SUFFIXES)
    assert str(package / "cli" / "replay.py") in files
    assert not [path for path in files if "__pycache__" in path]
