"""As much of IPython's shell as an extension uses; as a program it runs cells and prints the notebook that is left.

python -m tests.live.shell CELL ...
"""

from __future__ import annotations

import json
import linecache
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

import gradsight


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


def notebook(cells: list[str]) -> dict[str, Any]:
    """The notebook after its cells have run in a kernel that VS Code started, with the blocks that they show."""
    shown: list[dict[str, str]] = []
    display: Any = ModuleType("IPython.display")
    display.display = lambda data, raw: shown.append(data)
    sys.modules.update({"IPython": ModuleType("IPython"), "IPython.display": display})
    shell = Shell()
    shell.user_ns["__vsc_ipynb_file__"] = "watched.ipynb"
    gradsight.load_ipython_extension(shell)
    found = []
    for text in cells:
        shown.clear()
        shell.run(text)
        outputs = [{"output_type": "display_data", "metadata": {}, "data": dict(data)} for data in shown]
        found.append(
            {
                "cell_type": "code",
                "execution_count": shell.count,
                "metadata": {},
                "outputs": outputs,
                "source": text,
            }
        )
    gradsight.unload_ipython_extension(shell)
    metadata = {"language_info": {"name": "python"}}
    return {"cells": found, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}


if __name__ == "__main__":
    print(json.dumps(notebook(sys.argv[1:])))
