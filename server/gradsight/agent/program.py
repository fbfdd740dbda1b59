"""The user's program as something to run: a script, a module, a piece of code or a notebook."""

from __future__ import annotations

import importlib.util
import json
import linecache
import os
import sys
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any

from gradsight.agent.last_calls import called_at_the_end
from gradsight.agent.sites import claim_cell, claim_file

CODE_NAME = "<string>"
Compiler = Callable[[Any, str], CodeType]


class NotRunnable(Exception):
    """The program cannot even be started; the text says why."""


@dataclass(frozen=True)
class Part:
    """One piece of source with its name; a notebook has several, everything else one."""

    filename: str
    source: Any


@dataclass(frozen=True)
class UserProgram:
    """What to run, under which name, with which search path."""

    parts: tuple[Part, ...]
    path: str
    arguments: tuple[str, ...]
    search_path: str
    package: str | None = None

    def execute(self, compile_part: Compiler) -> None:
        """Runs the parts one after the other in a fresh `__main__`."""
        module = ModuleType("__main__")
        module.__dict__["__builtins__"] = __builtins__
        module.__file__ = self.path
        if self.package is not None:
            module.__package__ = self.package
        sys.modules["__main__"] = module
        sys.argv = [self.path, *self.arguments]
        sys.path.insert(0, self.search_path)
        with called_at_the_end():
            for part in self.parts:
                exec(compile_part(part.source, part.filename), module.__dict__)


def load(request: dict[str, Any]) -> UserProgram:
    """The program that a request asks for."""
    arguments = tuple(str(item) for item in request.get("arguments", ()))
    if request.get("code") is not None:
        return _from_code(str(request["code"]), str(request.get("code_name") or CODE_NAME), arguments)
    if request.get("module"):
        return _from_module(str(request["module"]), arguments)
    path = os.path.abspath(str(request.get("script") or ""))
    text = request.get("text")
    if text is None and not os.path.isfile(path):
        raise NotRunnable(f"there is no file {path}")
    # A notebook that an editor shows comes as one text, its cells joined.
    if text is None and path.endswith(".ipynb"):
        return _from_notebook(path, arguments)
    source = _read(path) if text is None else str(text)
    claim_file(path)
    if text is not None:
        _remember(path, str(text))
    return UserProgram((Part(path, source),), path, arguments, os.path.dirname(path))


def _from_code(code: str, name: str, arguments: tuple[str, ...]) -> UserProgram:
    claim_file(name)
    _remember(name, code)
    return UserProgram((Part(name, code),), name, arguments, os.getcwd())


def _from_module(name: str, arguments: tuple[str, ...]) -> UserProgram:
    sys.path.insert(0, os.getcwd())
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError) as error:
        raise NotRunnable(f"the module {name} cannot be found: {error}") from None
    finally:
        sys.path.pop(0)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise NotRunnable(f"there is no module {name} with Python source")
    claim_file(spec.origin)
    part = Part(spec.origin, _read(spec.origin))
    return UserProgram((part,), spec.origin, arguments, os.getcwd(), spec.parent)


def _from_notebook(path: str, arguments: tuple[str, ...]) -> UserProgram:
    try:
        with open(path, encoding="utf-8") as file:
            cells = json.load(file)["cells"]
        sources = [
            (index, "".join(cell["source"]) if isinstance(cell["source"], list) else str(cell["source"]))
            for index, cell in enumerate(cells, start=1)
            if cell["cell_type"] == "code"
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotRunnable(f"{path} is not a notebook: {error}") from None
    parts = []
    for index, text in sources:
        filename = f"{path}#cell{index}"
        plain = "\n".join(_without_magic(line) for line in text.split("\n"))
        claim_cell(filename, path, index)
        _remember(filename, plain)
        parts.append(Part(filename, plain))
    return UserProgram(tuple(parts), path, arguments, os.path.dirname(path))


def _without_magic(line: str) -> str:
    """Shell and magic lines of IPython mean nothing to Python; their line stays, so that numbers fit."""
    bare = line.lstrip()
    return line[: len(line) - len(bare)] + "pass  # " + bare if bare.startswith(("%", "!", "?")) else line


def _read(path: str) -> str:
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise NotRunnable(f"{path} cannot be read: {error}") from None


def _remember(filename: str, text: str) -> None:
    """Tracebacks and messages quote this text, also when no file of that name holds it."""
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
