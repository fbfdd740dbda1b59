"""`%load_ext gradsight` in a shell that keeps IPython's promises; `make test-live` does the same in a real kernel."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import gradsight
from gradsight.live import watching
from tests.live.shell import Shell


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    blocks: list[dict[str, str]] = []
    module: Any = ModuleType("IPython.display")
    module.display = lambda data, raw: blocks.append(data)
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return blocks


@pytest.fixture
def shell(shown: list[dict[str, str]]) -> Iterator[Shell]:
    shell = Shell()
    gradsight.load_ipython_extension(shell)
    yield shell
    gradsight.unload_ipython_extension(shell)
    assert not watching.is_watching()


def test_the_block_names_cells_and_lines(shell: Shell, shown: list[dict[str, str]]) -> None:
    shell.run("w = torch.ones(3, requires_grad=True)\ny = w.exp()\n")
    shell.run("y *= 3\n")
    error = shell.run("y.sum().backward()\n")
    assert "cell 2, line 1" in "\n".join(getattr(error, "__notes__", ()))
    [block] = shown
    for role, cell, line in (("saved", 1, 2), ("overwritten", 2, 1), ("needed", 3, 1)):
        assert f"{role} cell {cell}, line {line}" in block["text/plain"]
    assert "<code>cell 2, line 1</code>" in block["text/html"]
    first = (
        "<code>y *= 3</code> overwrites the output of <code>exp</code> (cell 1, line 2), "
        "which the <code>backward()</code> in cell 3, line 1 needs"
    )
    assert first in block["text/html"]
    assert "`" not in block["text/html"]


def test_in_vs_code_the_places_of_the_block_are_links(shell: Shell, shown: list[dict[str, str]]) -> None:
    shell.user_ns["__vsc_ipynb_file__"] = "lesson.ipynb"
    shell.run("w = torch.ones(3, requires_grad=True)\ny = w.exp()\n")
    shell.run("y *= 3\n")
    shell.run("y.sum().backward()\n")
    link = '<a href="vscode-notebook-cell:?execution_count=2&amp;line=1"><code>cell 2, line 1</code></a>'
    assert link in shown[0]["text/html"]


def test_elsewhere_the_places_of_the_block_are_no_links(shell: Shell, shown: list[dict[str, str]]) -> None:
    shell.run("torch.ones(3, requires_grad=True).mul_(2)\n")
    assert "href" not in shown[0]["text/html"]


def test_source_in_the_block_is_text_and_not_html(shell: Shell, shown: list[dict[str, str]]) -> None:
    shell.run('w = torch.ones(3, requires_grad=True)\nw.mul_(len("<script>"))\n')
    assert "<script>" not in shown[0]["text/html"]
    assert "&lt;script&gt;" in shown[0]["text/html"]


def test_an_error_that_the_cell_catches_is_not_shown(shell: Shell, shown: list[dict[str, str]]) -> None:
    shell.run("w = torch.ones(3, requires_grad=True)\ntry:\n    w.mul_(2)\nexcept RuntimeError:\n    pass\n")
    shell.run("1 / 0\n")
    assert shown == []


def test_the_magic_tells_the_state_of_a_name(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run("w = torch.ones(3, requires_grad=True)\ny = w.exp()\nn = 3\n")
    for word, said in (
        ("y", "made by `exp` (cell 1, line 2)"),
        ("w", "`.grad` is None"),
        ("n", "n: has the type int, which is not a tensor"),
        ("z", "there is no `z`"),
        ("y.nothing", "`y.nothing` has no `nothing`"),
        ("y[0]", "is not a name"),
    ):
        shell.magic(word)
        assert said in capsys.readouterr().out, word


def test_the_magic_switches_the_watch_and_reports(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.magic("off")
    assert not watching.is_watching()
    shell.magic("on")
    assert watching.is_watching()
    shell.magic("")
    assert "gradsight: no fault seen" in capsys.readouterr().out


def test_unloading_leaves_the_shell_as_it_was(shown: list[dict[str, str]]) -> None:
    shell = Shell()
    gradsight.load_ipython_extension(shell)
    gradsight.unload_ipython_extension(shell)
    assert shell.callbacks == []
    assert shell.magics_manager.magics["line"] == {}
    error = shell.run("torch.ones(3, requires_grad=True).mul_(2)\n")
    assert not hasattr(error, "__notes__")
