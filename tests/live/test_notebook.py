"""`%load_ext gradsight` in a shell that keeps IPython's promises; `make test-live` does the same in a real kernel."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

import gradsight
from gradsight.live import watching


class Shell:
    """As much of IPython's shell as an extension uses."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {"torch": torch}
        self.compile = SimpleNamespace(_filename_map={})
        self.events = self
        self.magics_manager = SimpleNamespace(magics={"line": {}})
        self.callbacks: list[Callable[[Any], None]] = []
        self.count = 0

    def register(self, event: str, callback: Callable[[Any], None]) -> None:
        assert event == "post_run_cell"
        self.callbacks.append(callback)

    def unregister(self, event: str, callback: Callable[[Any], None]) -> None:
        self.callbacks.remove(callback)

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        self.magics_manager.magics[kind][name] = function

    def run(self, text: str) -> BaseException | None:
        self.count += 1
        filename = f"ipykernel/{self.count}.py"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        self.compile._filename_map[filename] = self.count
        error: BaseException | None = None
        try:
            exec(compile(text, filename, "exec"), self.user_ns)
        except Exception as raised:
            error = raised
        for callback in list(self.callbacks):
            callback(SimpleNamespace(error_in_exec=error))
        return error

    def magic(self, line: str) -> None:
        self.magics_manager.magics["line"]["gradsight"](line)


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
        assert any(
            each.split()[0] == role and f"cell {cell}, line {line}" in each
            for each in block["text/plain"].splitlines()
        ), block["text/plain"]
    assert "<code>cell 2, line 1</code>" in block["text/html"]
    assert "<code>y *= 3</code>" in block["text/html"]


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
        ("n", "n: has the type int, and is no tensor"),
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
