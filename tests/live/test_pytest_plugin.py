"""`pytest --gradsight`, as a user starts it: in a process of its own, alone and under xdist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradsight.session.watch_notes import notes_in

pytestmark = pytest.mark.setups

PROGRAM = """
import pytest
import torch

def test_writes():
    w = torch.ones(3, requires_grad=True)
    y = w.exp()
    y *= 3
    y.sum().backward()

def test_sound():
    w = torch.ones(3, requires_grad=True)
    w.exp().sum().backward()

def test_untrained():
    used, unused = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    opt = torch.optim.SGD([*used.parameters(), *unused.parameters()], 0.1)
    used(torch.ones(1, 2)).sum().backward()
    opt.step()

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused, self.fixed = (torch.nn.Linear(2, 2) for _ in range(3))
        self.fixed.requires_grad_(False)

    def forward(self, given):
        return self.fixed(self.used(given))

def test_without_optimizer():
    Net()(torch.ones(1, 2)).sum().backward()

def test_evaluated():
    with torch.no_grad():
        Net()(torch.ones(1, 2))

def test_expected():
    with pytest.raises(RuntimeError, match="leaf Variable"):
        torch.ones(3, requires_grad=True).mul_(2)
"""


def run(folder: Path, *options: str) -> str:
    (folder / "test_model.py").write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*command, *options, "test_model.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("summary", ["short", "whole"])
@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"])
def test_a_failing_test_says_which_line_did_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...], summary: str
) -> None:
    # pytest shortens the summary unless it believes to run under CI.
    for variable in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(variable, raising=False)
    if summary == "whole":
        monkeypatch.setenv("CI", "1")
    output = run(tmp_path, "--gradsight", *workers)
    assert "1 failed, 5 passed" in output, output
    (note,) = notes_in(output)
    assert note.said.startswith("`y *= 3` overwrites")
    assert [(step.role, step.line) for step in note.steps] == [
        ("saved", 7),
        ("overwritten", 8),
        ("needed", 9),
    ]
    assert {Path(step.path).name for step in note.steps} == {"test_model.py"}


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"])
def test_untrained_parameters_fail_a_test_on_request(tmp_path: Path, workers: tuple[str, ...]) -> None:
    output = run(tmp_path, "--gradsight-untrained", *workers)
    assert "3 failed, 3 passed" in output, output
    assert "every parameter must get a gradient" in output
    assert "no gradient in any of 1 steps" in output
    assert "Net.unused.weight: backward left it without a gradient" in output
    assert "Net.fixed" not in output
    assert "Net.used" not in output


def test_without_the_option_nothing_is_watched(tmp_path: Path) -> None:
    output = run(tmp_path)
    assert "1 failed, 5 passed" in output, output
    assert "gradsight:" not in output
