"""Files that somebody else chose: nothing outside the project is touched, nothing hangs, nothing is emptied or forged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradsight import cli
from gradsight.cli import ci_options, kept_folder, replay, shell, writing

FAILS = """import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= 3
y.sum().backward()
"""
FIXED = FAILS.replace("y *= 3", "y = y * 3")
PATIENCE = 60
Special = Callable[[Path], None]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a fault in it, that is the working folder; the user's own folder is beside it."""
    folder = tmp_path / "project"
    (folder / ".git" / "info").mkdir(parents=True)
    (folder / "train.py").write_text(FAILS)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GRADSIGHT_CACHE_DIR", str(tmp_path / "own"))
    for variable in (kept_folder.CACHE_VARIABLE, kept_folder.KEY_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    return folder


def check(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """The command as a process of its own, which must end."""
    return command("check", *arguments)


def command(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "gradsight", *arguments], capture_output=True, check=False, timeout=PATIENCE
    )


def settle() -> None:
    """Let files grow older than the tick of the file system."""
    time.sleep(2.2 if Path("train.py").stat().st_mtime_ns % 1_000_000 == 0 else 0.1)


def link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


# What does not end, and what waits for somebody to write.


@pytest.mark.parametrize("special", [link_to_zero, make_pipe])
@pytest.mark.parametrize(
    ("name", "code"),
    [("pyproject.toml", shell.FAILED), (".gitignore", shell.FINDINGS), (".git/info/exclude", shell.FINDINGS)],
)
def test_a_special_file_in_the_place_of_settings_is_not_read(special: Special, name: str, code: int) -> None:
    special(Path(name))
    done = check("--no-cache", ".")
    assert done.returncode == code
    assert b"GS101" in done.stdout
    assert (b"is not a regular file" in done.stderr) == (code == shell.FAILED)


@pytest.mark.parametrize("special", [link_to_zero, make_pipe])
def test_a_special_file_that_is_named_is_refused(special: Special) -> None:
    special(Path("odd.py"))
    done = check("--no-cache", "odd.py")
    assert done.returncode == shell.FAILED
    assert b"odd.py: is not a regular file" in done.stderr
    assert done.stdout == b""
    assert command("fix", "odd.py").returncode == shell.FAILED


@pytest.mark.parametrize("special", [link_to_zero, make_pipe])
def test_a_special_file_in_the_place_of_kept_results_is_replaced(special: Special) -> None:
    check(".")
    kept = Path(".gradsight_cache/check.json")
    kept.unlink()
    special(kept)
    Path("train.py").write_text(FAILS + "\n")
    assert check(".").returncode == shell.FINDINGS
    assert kept.is_file()
    assert not kept.is_symlink()


def test_a_file_that_is_too_large_is_declined_with_a_message() -> None:
    Path("large.py").write_text("import torch\n" + "value = 1\n" * 1_000_000)
    done = check("--no-cache", ".")
    assert done.returncode == shell.FINDINGS
    assert b"large.py: is larger than 2 MB and is not checked (maxMegabytes" in done.stderr
    assert check("--no-cache", "large.py").returncode == shell.FAILED
    assert b"large.py: is larger than 2 MB" in command("fix", "large.py").stderr


def test_the_largest_size_is_a_setting(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text("[tool.gradsight]\nmaxMegabytes = 0.00005\n")
    assert cli.main(["check", "--no-cache", "train.py"]) == shell.FAILED
    assert "train.py: is larger than 5e-05 MB" in capsys.readouterr().err
    Path("pyproject.toml").write_text("[tool.gradsight]\nmaxMegabytes = true\n")
    assert cli.main(["check", "--no-cache", "train.py"]) == shell.FAILED
    assert "maxMegabytes: a number of megabytes up to 1000 is expected" in capsys.readouterr().err


def test_a_large_file_without_torch_is_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    Path("table.py").write_text("value = 1\n" * 250_000)
    assert cli.main(["check", "--no-cache", "."]) == shell.FINDINGS
    assert capsys.readouterr().err == ""


def test_the_output_of_a_notebook_does_not_make_it_too_large(capsys: pytest.CaptureFixture[str]) -> None:
    cell = {"cell_type": "code", "source": FAILS, "outputs": [{"data": "x" * 3_000_000}], "metadata": {}}
    Path("notes.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4}))
    assert cli.main(["check", "--no-cache", "notes.ipynb"]) == shell.FINDINGS
    assert "GS101" in capsys.readouterr().out


# Where results are kept.


def test_a_linked_folder_is_not_written_to_nor_cleaned(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    for number in range(15):
        (victim / f"run-2024-{number}.log").write_text("precious")
    Path(".gradsight_cache").symlink_to(victim)
    settle()
    done = check(".")
    assert done.returncode == shell.FINDINGS
    assert b".gradsight_cache is a link: no results are kept there" in done.stderr
    assert len(os.listdir(victim)) == 15


def test_files_of_the_folder_that_are_links_leave_what_they_lead_to(tmp_path: Path) -> None:
    check(".")
    settle()
    check(".")
    kept = [file for file in Path(".gradsight_cache").iterdir() if file.is_file()]
    assert {".gitignore", "check.json"} <= {file.name for file in kept}
    victims = []
    for number, file in enumerate(kept):
        victims.append(tmp_path / f"victim-{number}")
        victims[-1].write_text("precious")
        file.unlink()
        file.symlink_to(victims[-1])
    for text in (FAILS + "\n", FIXED):
        Path("train.py").write_text(text)
        settle()
        assert check(".").returncode == (shell.CLEAN if text == FIXED else shell.FINDINGS)
    assert [victim.read_text() for victim in victims] == ["precious"] * len(kept)


def test_a_folder_with_other_things_in_it_is_not_used() -> None:
    Path(".gradsight_cache").mkdir()
    Path(".gradsight_cache/thesis.txt").write_text("precious")
    done = check(".")
    assert b".gradsight_cache holds other things" in done.stderr
    assert os.listdir(".gradsight_cache") == ["thesis.txt"]


def test_only_files_with_names_of_ours_are_forgotten() -> None:
    check(".")
    for number in range(20):
        Path(f".gradsight_cache/run-{number}.log").write_text("precious")
    settle()
    check("--jobs", "3", ".")
    assert len(list(Path(".gradsight_cache").glob("run-*.log"))) == 20


def test_a_folder_of_somebody_else_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    check(".")
    assert kept_folder.refusal(".gradsight_cache") == ""
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert kept_folder.refusal(".gradsight_cache") == "belongs to another user"
    assert list(replay._folders_above()) == [str(Path.cwd() / ".gradsight_cache")]


def test_a_forged_run_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["gradsight", "check", "."])
    settle()
    assert cli.main() == shell.FINDINGS
    (kept,) = Path(".gradsight_cache").glob("run-*")
    seal, form, key = kept.read_bytes().split(b"\0", 5)[:3]
    forged = b"\0".join([form, key, b"0", b"0", b"nothing to report\n"])
    kept.write_bytes(seal + b"\0" + forged)
    assert cli.main() == shell.FINDINGS
    own = (Path(os.environ["GRADSIGHT_CACHE_DIR"]) / "key").read_bytes()
    kept.write_bytes(kept_folder._seal(b"another key", forged) + b"\0" + forged)
    assert cli.main() == shell.FINDINGS
    kept.write_bytes(kept_folder._seal(own, forged) + b"\0" + forged)
    assert cli.main() == shell.CLEAN, "the forgery is right but for its key"


def test_forged_results_change_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "."]) == shell.FINDINGS
    path = Path(".gradsight_cache/check.json")
    seal, table = path.read_bytes().split(b"\0", 1)
    known = json.loads(table)
    next(iter(known["entries"].values()))["findings"] = []
    path.write_bytes(seal + b"\0" + json.dumps(known).encode())
    assert cli.main(["check", "."]) == shell.FINDINGS
    path.write_bytes(json.dumps(known).encode())
    assert cli.main(["check", "."]) == shell.FINDINGS


def test_the_key_is_private_and_one_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    check(".")
    key = tmp_path / "own" / "key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert len(key.read_bytes()) == kept_folder.KEY_SIZE
    assert kept_folder.has_key()
    key.chmod(0o644)
    assert not kept_folder.has_key()
    key.unlink()
    key.symlink_to(tmp_path / "elsewhere")
    assert not kept_folder.has_key()
    assert not (tmp_path / "elsewhere").exists()


def test_nothing_is_kept_without_a_key(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("a file where the folder should be")
    assert check(".").returncode == shell.FINDINGS
    assert not Path(".gradsight_cache/check.json").exists()


def test_a_server_names_a_key_that_is_kept_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kept_folder.KEY_VARIABLE, "a secret of the server")
    settle()
    monkeypatch.setattr(sys, "argv", ["gradsight", "check", "."])
    cli.main()
    kept = b"".join(path.read_bytes() for path in Path(".gradsight_cache").iterdir())
    assert b"run 2" in kept
    assert b"a secret of the server" not in kept
    assert replay.answer(["check", "."]) == shell.FINDINGS
    monkeypatch.setenv(kept_folder.KEY_VARIABLE, "another secret of it")
    assert replay.answer(["check", "."]) is None
    monkeypatch.setenv(kept_folder.KEY_VARIABLE, "short")
    assert not kept_folder.has_key()


def test_kept_results_are_complete_or_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    cli.main(["check", "."])
    path = Path(".gradsight_cache/check.json")
    before = path.read_bytes()

    def refuse(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", refuse)
    Path("train.py").write_text(FIXED)
    assert cli.main(["check", "."]) == shell.CLEAN
    assert path.read_bytes() == before
    assert not [name for name in os.listdir(".gradsight_cache") if name.endswith(writing.STRAY_SUFFIX)]


# Baselines.


def test_a_baseline_that_cannot_be_written_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Path("known.json")
    known.write_text('{"version": 1, "findings": []}')
    before = known.read_bytes()

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    assert cli.main(["check", "--no-cache", "--baseline", "known.json", "--write-baseline"]) == shell.FAILED
    assert known.read_bytes() == before


def test_a_baseline_that_is_a_link_to_elsewhere_is_not_written(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text("precious")
    os.symlink(elsewhere, "known.json")
    told = check("--no-cache", "--baseline", "known.json", "--write-baseline")
    assert told.returncode == shell.FAILED
    assert b"known.json cannot be written: it is a link that leads out of its folder" in told.stderr
    assert elsewhere.read_text() == "precious"


def test_a_baseline_that_is_a_link_within_its_folder_stays_one() -> None:
    os.mkdir("kept")
    os.symlink("kept/known.json", "known.json")
    assert check("--no-cache", "--baseline", "known.json", "--write-baseline").returncode == shell.CLEAN
    assert os.path.islink("known.json")
    assert json.loads(Path("kept/known.json").read_text())["findings"]


def test_a_name_that_is_no_text_is_known_to_a_baseline() -> None:
    os.rename("train.py", b"b\xff\xfe.py")
    first = check("--no-cache", "--baseline", "known.json", "--write-baseline", ".")
    assert (first.returncode, first.stdout) == (shell.CLEAN, b"")
    assert b"1 finding taken as known" in first.stderr
    assert check("--no-cache", "--baseline", "known.json", ".").returncode == shell.CLEAN


def test_a_baseline_keeps_its_permissions_and_a_new_one_gets_the_usual(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        cli.main(["check", "--no-cache", "--baseline", "known.json", "--write-baseline"])
        assert Path("known.json").stat().st_mode & 0o777 == 0o644
        os.chmod("known.json", 0o664)
        cli.main(["check", "--no-cache", "--baseline", "known.json", "--write-baseline"])
        assert Path("known.json").stat().st_mode & 0o777 == 0o664
    finally:
        os.umask(mask)


# Names that act.

ACTING = (
    b"x\n::error::forged.py",
    b"\x1b[31mred\x1b]0;title\x07.py",
    b"b\xff.py",
    "turned\u202eyp.py".encode(),
)


@pytest.mark.parametrize("form", ci_options.FORMATS)
def test_a_name_reaches_no_reader_raw(form: str) -> None:
    for name in ACTING:
        with open(name, "w") as file:
            file.write(FAILS)
    with open(b"y\n::error::unread.py", "wb") as file:
        file.write(b"import torch\n\xff\n")
    done = check("--no-cache", "--format", form, ".")
    assert done.returncode == shell.FINDINGS
    for said in (done.stdout, done.stderr):
        assert b"\x1b" not in said
        assert b"\x07" not in said
        assert "\u202e".encode() not in said
        assert not [line for line in said.splitlines() if line.startswith(b"::error::")]
        said.decode("utf-8")


def test_a_sarif_log_has_addresses_for_every_name() -> None:
    for name in (b"b\xff.py", b"a b%.py"):
        with open(name, "w") as file:
            file.write(FAILS)
    (run,) = json.loads(check("--no-cache", "--format", "sarif", ".").stdout)["runs"]
    addresses = [
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]
    ]
    assert addresses == ["a%20b%25.py", "b%FF.py", "train.py"]


def test_settings_and_fixes_reach_no_terminal_raw() -> None:
    Path("pyproject.toml").write_text('[tool.gradsight]\n"\\u001b[31mkey" = 1\n')
    text = FAILS.replace("y *= 3", 'd = {"\\x1b": y}\nd["\x1b[2J"] = y\nd["\x1b[2J"] *= 3')
    Path("\x1b]0;t\x07.py").write_text(text)
    for words in (("check", "--no-cache", "."), ("fix", "."), ("check", "nope\x1b[31m"), ("\x1b[2J",)):
        done = command(*words)
        assert b"\x1b" not in done.stdout + done.stderr, words
    assert b"unknown option \\x1b[31mkey" in check("--no-cache", ".").stderr


def test_a_patch_is_exact_in_a_pipe_and_names_its_file_visibly() -> None:
    Path("a\x1bb.py").write_text(FAILS.replace("y *= 3", "y *= 3  # \x1b[8m"))
    done = command("fix", "--diff", "a\x1bb.py")
    assert done.stdout.startswith(b"--- a\\x1bb.py\n")
    assert b"-y *= 3  # \x1b[8m\n" in done.stdout


# Files that are repaired.


def test_hard_links_stay_one_file() -> None:
    os.link("train.py", "other.txt")
    assert cli.main(["fix", "train.py"]) == shell.CLEAN
    assert os.path.samefile("train.py", "other.txt")
    Path("train.py").write_text(FAILS)
    os.link("train.py", "second.py")
    assert cli.main(["fix", "."]) == shell.CLEAN, "a file that was repaired under another name is not left"
    assert Path("other.txt").read_text() == FIXED


def test_owner_and_special_permissions_stay(project: Path) -> None:
    path = project / "train.py"
    if os.geteuid() == 0:
        os.chown(path, 1234, 1234)
    os.chmod(path, 0o4755)
    before = path.stat()
    assert cli.main(["fix", "train.py"]) == shell.CLEAN
    after = path.stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)
    assert path.read_text() == FIXED


def test_a_file_whose_owner_cannot_be_given_away_is_written_where_it_is(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    number = (project / "train.py").stat().st_ino
    assert cli.main(["fix", "train.py"]) == shell.CLEAN
    assert (project / "train.py").stat().st_ino == number
    assert (project / "train.py").read_text() == FIXED


def test_what_a_killed_run_left_is_removed_and_nothing_else(project: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    stray = project / f".train.py.{gone.pid}-abc{writing.STRAY_SUFFIX}"
    at_work = project / f".train.py.{os.getpid()}-abc{writing.STRAY_SUFFIX}"
    other = project / ".train.py.swp"
    for path in (stray, at_work, other):
        path.write_text("")
    cli.main(["fix", "."])
    assert [path.exists() for path in (stray, at_work, other)] == [False, True, True]


def test_strays_of_kept_results_are_removed() -> None:
    cli.main(["check", "."])
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    stray = Path(f".gradsight_cache/.check.json.{gone.pid}-abc{writing.STRAY_SUFFIX}")
    stray.write_text("")
    Path("train.py").write_text(FIXED)
    cli.main(["check", "."])
    assert not stray.exists()


# What a run says of itself.


def run_in(check_of: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    capsys.readouterr()
    code = cli.main(check_of)
    return code, capsys.readouterr()


def test_nothing_more_is_said_after_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("check", "fix"):
        code, said = run_in([name, "missing.py"], capsys)
        assert (code, said.out) == (shell.FAILED, "")
        assert "no such file or folder: missing.py" in said.err


def test_a_file_without_torch_is_told_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    Path("plain.py").write_text("x = 1\n")
    assert run_in(["check", "--no-cache", "plain.py"], capsys)[1].out == "1 file checked, no torch in it\n"


def test_fix_counts_with_the_eyes_of_check(capsys: pytest.CaptureFixture[str]) -> None:
    Path("nets.py").write_text(
        "import torch\n\n\ndef scale(values):\n    values.mul_(2)\n    return values\n"
    )
    Path("use.py").write_text(
        "import torch\nfrom nets import scale\n\nx = torch.ones(3, requires_grad=True)\nscale(x).sum().backward()\n"
    )
    code, said = run_in(["fix", "--diff", "."], capsys)
    assert "1 fix would be applied in 1 file, 1 left (no safe fix): nets.py:5" in said.err
    code, said = run_in(["fix", "."], capsys)
    assert code == shell.FINDINGS
    assert said.out.splitlines()[-1] == "1 fix applied in 1 file, 1 left (no safe fix): nets.py:5"
    assert "1 error in" in run_in(["check", "--no-cache", "."], capsys)[1].out


def test_fix_knows_of_a_file_that_does_not_parse(capsys: pytest.CaptureFixture[str]) -> None:
    Path("train.py").write_text("import torch\ndef (\n")
    code, said = run_in(["fix", "."], capsys)
    assert (code, said.out) == (shell.FINDINGS, "0 fixes applied, 1 file not parsed: train.py:2\n")
