"""The notes of a watch and the text of `gradsight run` are one look: the same lines for the same program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from gradsight.cli import main
from gradsight.session.watch_notes import notes_in
from tests.live import shell
from tests.live.test_watch import notes_of

pytestmark = pytest.mark.setups

PROGRAMS = {
    "saved and overwritten, in calls": """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)

            def forward(self, x):
                h = torch.sigmoid(self.fc(x))
                gate = h * 2
                h *= 0.5
                return gate + h

        def train():
            net = Net()
            loss = net(torch.randn(2, 4)).sum()
            loss.backward()

        train()
        """,
    "cut": """
        import torch
        w = torch.ones(3, requires_grad=True)
        loss = (w * 2).detach().sum()
        loss.backward()
        """,
    "a leaf": "import torch\nw = torch.ones(3, requires_grad=True)\nw.mul_(2)\n",
    "wide letters and tabs": (
        "import torch\nif True:\n\twert = torch.ones(3, requires_grad=True)\n"
        "\t重み = wert.exp(); 重み *= 2  # größer\n\t重み.sum().backward()\n"
    ),
    "a long line": (
        "import torch\nw = torch.ones(3, requires_grad=True)\n"
        f"y = w.exp()\nnames = [{', '.join(repr('n' * 12) for _ in range(20))}]; y *= 2\ny.sum().backward()\n"
    ),
    "a refusal with help of its own": (
        "import torch\nw = torch.ones(3, requires_grad=True)\ny = (w * 2).numpy()\n"
    ),
    "twice": (
        "import torch\nw = torch.ones(3, requires_grad=True)\n"
        "loss = (w * w).sum()\nloss.backward()\nloss.backward()\n"
    ),
}


def watch_prints(folder: Path, code: str) -> list[str]:
    """The notes on the error that ends a program, from a process of its own; its beginning is none of the user's frames."""
    paths = os.pathsep.join([str(folder / "site-packages"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8"},
    )
    above, head, below = done.stderr.partition("gradsight: ")
    assert head, done.stderr
    assert "Error: " in above.splitlines()[-1], done.stderr
    return below.splitlines()


WATCHED = "import gradsight, runpy; gradsight.watch(); runpy.run_path('train.py', run_name='__main__')"


def run_prints(capfd: pytest.CaptureFixture[str], path: Path) -> list[str]:
    """What `gradsight run` prints of the first fault, without what torch said and without the change of lines."""
    assert main(["run", str(path)]) == 1
    lines = capfd.readouterr().out.splitlines()
    lines = lines[: next(number for number, line in enumerate(lines) if "gradsight explain" in line) + 1]
    fix = next((number for number, line in enumerate(lines) if line.startswith("  = fix: ")), len(lines) - 1)
    kept = [*lines[:fix], lines[-1]]
    return [line.replace("→", "->") for line in kept if not line.startswith("  = torch: ")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_notes_are_what_run_prints(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(dedent(PROGRAMS[name]).lstrip(), "utf-8")
    notes = watch_prints(tmp_path, WATCHED)
    printed = run_prints(capfd, tmp_path / "train.py")
    assert notes[1:] == printed[1:]
    assert notes[0].startswith("train.py:")
    # Of a path that was cut a run has kept who is at its other end; a watch has not.
    shared = printed[0].partition(" the path from ")[0]
    assert notes[0].startswith(shared)
    assert notes[0] == printed[0] or name == "cut"
    assert any("^" in line for line in notes)
    assert any(line.startswith("  = help: ") for line in notes)


def test_a_line_in_another_file_has_an_excerpt_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blocks.py").write_text("def grow(t):\n    t *= 2\n    return t\n")
    (tmp_path / "train.py").write_text(
        "import torch\nfrom blocks import grow\n\nw = torch.ones(3, requires_grad=True)\n"
        "y = w.exp()\ngrow(y).sum().backward()\n"
    )
    notes = watch_prints(tmp_path, WATCHED)
    assert notes == run_prints(capfd, tmp_path / "train.py")
    assert "  in train.py:5:5" in notes
    assert "  = trail: saved train.py:5 -> overwritten blocks.py:2 -> needed train.py:6" in notes


CELLS = (
    "import torch\nw = torch.ones(3, requires_grad=True)\ny = w.exp()\n",
    "# scaled\ny *= 3\n",
    "y.sum().backward()\n",
)


IN_A_SHELL = """
import sys, types
sys.modules.update({"IPython": types.ModuleType("IPython"), "IPython.display": types.ModuleType("IPython.display")})
sys.modules["IPython.display"].display = lambda data, raw: None
import gradsight, shell
kernel = shell.Shell()
gradsight.load_ipython_extension(kernel)
raise [kernel.run(cell) for cell in CELLS][-1]
"""


def test_cells_are_told_as_run_tells_those_of_a_notebook(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site-packages").mkdir()
    shutil.copy(shell.__file__, tmp_path / "site-packages" / "shell.py")
    notes = watch_prints(tmp_path, f"CELLS = {CELLS!r}\n{IN_A_SHELL}")
    cells = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": cell}
        for cell in CELLS
    ]
    path = tmp_path / "lesson.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    printed = run_prints(capfd, path)
    # The kernel does not know the name of its notebook.
    assert printed[0].startswith(f"{path}:cell 2:2:1: error ")
    assert [f"{path}:{notes[0]}", *notes[1:]] == printed
    steps = notes_in("\n".join([f"gradsight: {notes[0]}", *notes[1:]]))[0].steps
    assert [(step.role, step.cell, step.line, step.source) for step in steps] == [
        ("saved", 1, 3, "y = w.exp()"),
        ("overwritten", 2, 2, "y *= 3"),
        ("needed", 3, 1, "y.sum().backward()"),
    ]


def test_a_note_can_be_read_back_from_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notes = notes_of(tmp_path, PROGRAMS["saved and overwritten, in calls"])
    (read,) = notes_in(f"RuntimeError: one of the variables\n{notes}", [str(tmp_path / "train.py")])
    assert read.code == "GS101"
    assert read.said.startswith("`h *= 0.5` overwrites")
    assert read.advice.startswith("write to a new tensor")
    assert [(step.role, step.path, step.line) for step in read.steps] == [
        ("saved", str(tmp_path / "train.py"), 10),
        ("overwritten", str(tmp_path / "train.py"), 12),
        ("needed", str(tmp_path / "train.py"), 18),
    ]


def test_a_note_takes_no_letters_that_a_log_may_refuse(tmp_path: Path) -> None:
    program = dedent(PROGRAMS["saved and overwritten, in calls"])
    assert notes_of(tmp_path, program).isascii()


def test_nothing_in_a_note_acts_on_a_terminal(tmp_path: Path) -> None:
    program = (
        "w = torch.ones(3, requires_grad=True)\ny = w.exp()  # \x1b]0;title\x07\ny *= 2\ny.sum().backward()\n"
    )
    notes = notes_of(tmp_path, program)
    assert "y = w.exp()" in notes
    assert "\x1b" not in notes
    assert "\x07" not in notes


def test_a_folder_that_is_gone_costs_no_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert "error GS102" in notes_of(tmp_path, PROGRAMS["a leaf"])
