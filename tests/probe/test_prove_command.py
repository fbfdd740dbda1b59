"""`gradsight prove`: torch decides about the findings of a file; how that is told, and how the command ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gradsight import cli
from gradsight.cli import shell
from gradsight.probe.standby import Standby
from gradsight.session import prober

LIBRARY = """\
import torch
from torch import nn

open("ran", "w").close()


class Gate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        gate = torch.sigmoid(self.linear(x))
        gate *= 2
        return gate * x


def loss(x):
    y = torch.exp(x * torch.ones(3, requires_grad=True))
    y += 1
    y.sum().backward()
"""
SAFE = "import torch\n\nx = torch.ones(3, requires_grad=True)\n(x * 2).sum().backward()\n"
# Nothing but the run itself can know which way it goes.
OTHER_OPERATOR = """\
import torch

x = torch.ones(3, requires_grad=True)
for way in [torch.exp, torch.neg][int(torch.ones(1).item()) :]:
    y = way(x)
    y *= 3
    y.sum().backward()
"""
SLOW = """\
import os
import time

import torch


def wait():
    return (open("running", "w").write(str(os.getpid())) and time.sleep(600)) or 1.0


x = torch.ones(3, requires_grad=True)
y = torch.exp(x * wait())
y *= 2
y.sum().backward()
"""


class Kept:
    """The warm interpreter of all tests, which no command may end."""

    def __init__(self, standby: Standby) -> None:
        self.run = standby.run

    def drop(self) -> None: ...


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, standby: Standby) -> Path:
    """An empty project that is the working folder; what is run in this process is run in the warm interpreter."""
    monkeypatch.setattr(prober, "Standby", lambda: Kept(standby))
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADSIGHT_STRICT", "1")
    return tmp_path


def check(
    capsys: pytest.CaptureFixture[str], text: str | None, *arguments: str, code: int, err: str = ""
) -> str:
    """Prove `library.py` with this text; the exit code is this, and the error stream says this.  What was printed."""
    if text is not None:
        Path("library.py").write_text(text)
    assert cli.main(["prove", *arguments]) == code
    said = capsys.readouterr()
    assert err in said.err
    return said.out


def test_every_finding_of_a_file_is_proved_without_running_the_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = check(capsys, LIBRARY, "library.py", code=shell.FINDINGS)
    assert "library.py:14:9: warning GS101 confirmed on torch" in said
    assert "library.py:20:5: error GS101 confirmed on torch" in said
    assert "= torch: one of the variables needed for gradient computation" in said
    assert said.splitlines()[-1].startswith("2 confirmed on torch")
    assert not Path("ran").exists()


@pytest.mark.parametrize("place", ["library.py:14", "library.py:13", "library.py:14:9"])
def test_one_finding_is_proved_by_its_line_or_by_a_line_of_its_trail(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document: dict[str, Any] = json.loads(
        check(capsys, LIBRARY, "--format", "json", place, code=shell.FINDINGS)
    )
    [finding] = document["findings"]
    assert (finding["code"], finding["location"]["row"], finding["verdict"]) == ("GS101", 14, "confirmed")
    assert "modified by an inplace operation" in finding["torch_said"]
    assert [step["role"] for step in finding["related"]][:2] == ["saved", "written"]
    assert "gate = Gate(" in finding["program"]
    assert document["verdicts"] == {"confirmed": 1, "refuted": 0, "undecided": 0, "not-reached": 0}
    assert document["torch"]
    assert document["python"] == os.path.abspath(sys.executable)


def test_a_finding_that_a_run_does_not_show_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    # The operator that saves its result is not the one that runs: nothing was seen to go right.
    said = check(capsys, OTHER_OPERATOR, "library.py", code=shell.CLEAN)
    assert "GS101 undecided: it ran" in said
    assert said.splitlines()[-1].startswith("1 undecided on torch")


def test_nothing_is_run_where_nothing_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    said = check(capsys, SAFE, "--python", "no-such-python", "library.py", code=shell.CLEAN)
    assert said == "nothing to prove in library.py\n"


def test_a_missing_file_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    check(capsys, None, "nowhere.py:3", code=shell.FAILED, err="gradsight: no such file: nowhere.py\n")


def test_a_folder_is_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    check(capsys, None, ".", code=shell.FAILED, err="gradsight: . is a folder: name a file\n")


def test_a_line_without_a_finding_is_said_with_the_lines_that_have_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = "gradsight: no finding on line 2: library.py has findings on lines 14, 20\n"
    check(capsys, LIBRARY, "library.py:2", code=shell.FAILED, err=words)
    words = "gradsight: no finding on line 2: there is none in library.py\n"
    check(capsys, SAFE, "library.py:2", code=shell.FAILED, err=words)


def test_a_python_without_torch_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = project / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    words = f"gradsight: no torch in {bare} "
    check(capsys, LIBRARY, "--python", str(bare), "library.py", code=shell.FAILED, err=words)


def test_a_python_that_cannot_be_started_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    words = "the interpreter no-such-python cannot be started"
    check(capsys, LIBRARY, "--python", "no-such-python", "library.py", code=shell.FAILED, err=words)


def test_a_file_whose_name_looks_like_a_place_is_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("odd.py:3").write_text(SAFE)
    assert check(capsys, None, "odd.py:3", code=shell.CLEAN) == "nothing to prove in odd.py:3\n"


def test_the_time_limit_ends_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--timeout", "0.5", "--format", "json", "library.py"]
    document = json.loads(check(capsys, SLOW, *arguments, code=shell.CLEAN))
    [finding] = document["findings"]
    assert (finding["outcome"], finding["verdict"]) == ("timeout", "not-reached")


def test_an_interrupt_wipes_the_progress_ends_the_program_and_leaves_no_process() -> None:
    terminal, follower = os.openpty()
    Path("library.py").write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, "-m", "gradsight", "prove", "--timeout", "0", "library.py"],
        stdout=subprocess.PIPE,
        stderr=follower,
        # A test run in the background hands on that interrupts are ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(follower)
    patience = time.monotonic() + 120
    while not (Path("running").exists() and Path("running").read_text()) and process.poll() is None:
        assert time.monotonic() < patience
        time.sleep(0.05)
    started = {*children_of(process.pid), int(Path("running").read_text())}
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    shown = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert (process.returncode, out) == (shell.INTERRUPTED, b"")
    assert shown.startswith("\r\x1b[Kproving GS101 on line 13")
    assert shown.endswith("\r\x1b[K")
    assert not [pid for pid in started if is_alive(pid)]


def children_of(parent: int) -> list[int]:
    """The processes that this one has started, as the system knows them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
            except OSError:
                continue
            if int(status.rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.name))
    return found


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has collected yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
