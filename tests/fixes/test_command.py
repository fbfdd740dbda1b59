"""`gradsight fix`: which files it changes, how it writes them, and how it ends."""

from __future__ import annotations

import io
import os
import stat
import sys
from pathlib import Path

import pytest

from gradsight import cli
from gradsight.cli import commands, fix, shell, writing

FAILS = "import torch\n\nx = torch.ones(3, requires_grad=True)\ny = x.exp()\ny *= 2\ny.sum().backward()\n"
FIXED = FAILS.replace("y *= 2", "y = y * 2")
UNSAFE = "import torch\n\nx = torch.ones(3, requires_grad=True)\ny = x * 2\ny.backward()\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project that is the working folder."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(
    content: str | bytes, after: str | bytes, *arguments: str, code: int, name: str = "train.py"
) -> str:
    """Write one file, run the command on it, compare file and exit code, and hand back what was printed."""
    path = Path(name)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    out, sys.stdout = sys.stdout, io.StringIO()
    try:
        ended = cli.main(["fix", *arguments, name])
        said = sys.stdout.getvalue()
    finally:
        sys.stdout = out
    assert path.read_bytes() == (after if isinstance(after, bytes) else after.encode())
    assert ended == code
    assert [entry for entry in os.listdir() if entry not in (name, ".git", "pyproject.toml")] == []
    return said


def test_safe_fixes_are_written() -> None:
    said = check(FAILS, FIXED, code=shell.CLEAN)
    assert "GS101 replace with `y = y * 2`" in said
    assert "1 fix applied in 1 file, nothing left" in said


def test_each_fix_that_is_listed_is_counted_once(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Once the list of layers is registered, the other file shows that they are never used."""
    (project / "net.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.head = nn.Linear(3, 3)\n"
        "        self.blocks = [nn.Linear(3, 3) for _ in range(2)]\n\n"
        "    def forward(self, x):\n        y = torch.exp(self.head(x))\n        y *= 2\n        return y\n"
    )
    (project / "train.py").write_text(
        "import torch\nfrom net import Net\n\nnet = Net()\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "net(torch.ones(3)).sum().backward()\noptimizer.step()\n"
    )
    assert cli.main(["fix"]) == shell.FINDINGS
    *rows, summary = capsys.readouterr().out.splitlines()
    assert [row.split()[1] for row in rows] == ["GS601", "GS101"]
    assert summary == "2 fixes applied in 1 file, 1 left (no safe fix): net.py:9"


def test_a_second_run_changes_nothing() -> None:
    check(FIXED, FIXED, code=shell.CLEAN)


def test_unsafe_fixes_wait_to_be_asked_for() -> None:
    assert "0 fixes applied, 1 left (no safe fix): train.py:5" in check(UNSAFE, UNSAFE, code=shell.FINDINGS)
    check(UNSAFE, UNSAFE.replace("y.backward()", "y.sum().backward()"), "--unsafe", code=shell.CLEAN)


def test_a_diff_changes_nothing() -> None:
    said = check(FAILS, FAILS, "--diff", code=shell.FINDINGS)
    assert said.splitlines()[:2] == ["--- train.py", "+++ train.py"]
    assert "-y *= 2\n+y = y * 2\n" in said
    assert check(FIXED, FIXED, "--diff", code=shell.CLEAN) == ""


def test_only_what_is_selected_is_repaired() -> None:
    check(FAILS, FAILS, "--select", "GS2", code=shell.CLEAN)
    check(FAILS, FIXED, "--select", "inplace-on-saved", code=shell.CLEAN)
    check(FAILS, FAILS, "--ignore", "GS101", code=shell.CLEAN)


def test_a_code_that_no_rule_has_is_refused() -> None:
    check(FAILS, FAILS, "--select", "GS9", code=shell.FAILED)


def test_a_file_that_is_not_there_fails() -> None:
    assert cli.main(["fix", "nowhere.py"]) == shell.FAILED


@pytest.mark.parametrize(
    "content",
    [
        FAILS.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + FAILS.encode(),
        ("# -*- coding: latin-1 -*-\nname = 'é'\n" + FAILS).encode("latin-1"),
        ("name = '😀'\n" + FAILS).encode(),
        FAILS.encode().rstrip(b"\n"),
    ],
    ids=["crlf", "byte-order-mark", "latin-1", "utf-8", "no-newline-at-end"],
)
def test_encoding_and_line_ends_are_kept(content: bytes) -> None:
    check(content, content.replace(b"y *= 2", b"y = y * 2"), code=shell.CLEAN)


def test_permissions_are_kept(project: Path) -> None:
    (project / "train.py").write_text("")
    os.chmod("train.py", 0o750)
    check(FAILS, FIXED, code=shell.CLEAN)
    assert stat.S_IMODE(os.stat("train.py").st_mode) == 0o750


def test_a_link_stays_a_link(project: Path) -> None:
    target = project / ".git" / "real.py"
    target.write_text(FAILS)
    os.symlink(target, "train.py")
    check(FAILS, FIXED, code=shell.CLEAN)
    assert os.path.islink("train.py")
    assert target.read_text() == FIXED


def test_a_link_that_leads_out_of_the_project_is_left_alone_unless_it_is_named(
    project: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path_factory.mktemp("elsewhere") / "real.py"
    near = project / "near.py"
    for path in (outside, near):
        path.write_text(FAILS)
    os.mkdir("part")
    os.symlink(outside, "part/far.py")
    os.symlink("../near.py", "part/close.py")
    commands.dispatch(["fix", "part"])
    assert "part/far.py: is a link to a file outside of this folder" in capsys.readouterr().err
    assert [path.read_text() == FIXED for path in (outside, near)] == [False, True]
    commands.dispatch(["fix", "part/far.py"])
    assert outside.read_text() == FIXED


def test_a_file_that_changed_meanwhile_is_left_alone(project: Path) -> None:
    path = project / "train.py"
    path.write_text("newer")
    with pytest.raises(writing.Changed):
        writing.replace_file(str(path), b"older", b"repaired")
    assert path.read_text() == "newer"
    assert os.listdir(project) == [".git", "train.py"] or sorted(os.listdir(project)) == [".git", "train.py"]


def test_what_comes_from_standard_input_goes_to_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FAILS.encode())))
    assert cli.main(["fix", "-"]) == shell.CLEAN
    assert capsys.readouterr().out == FIXED


def test_a_notebook_is_not_touched() -> None:
    assert "0 fixes applied, 1 file left alone" in check("{}", "{}", code=shell.FAILED, name="train.ipynb")


def test_a_notebook_without_a_finding_is_left_as_it_is(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "train.py").write_text(FAILS)
    (project / "notes.ipynb").write_text('{"cells": [], "metadata": {"about": "torch"}}')
    (project / "other.ipynb").write_text("{}")
    assert cli.main(["fix"]) == shell.CLEAN
    assert "1 fix applied in 1 file, nothing left" in capsys.readouterr().out


def test_what_could_not_be_written_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, known: bytes, data: bytes) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(fix, "replace_file", refuse)
    assert "0 fixes applied, 1 file left alone with 1 finding" in check(FAILS, FAILS, code=shell.FAILED)
