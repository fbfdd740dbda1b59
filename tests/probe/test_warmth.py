"""A warm interpreter has imported what a probe needs of ours, so that no probe does it again."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

SERVER = Path(__file__).resolve().parents[2] / "server"
AGENT = "gradsight.agent"


def test_a_run_imports_nothing_that_the_warm_interpreter_has_not() -> None:
    warm = reached(imported_by(function_in(f"{AGENT}.standby", "warm_up")), lazily=False)
    needed = reached([f"{AGENT}.session"], lazily=True)
    assert len(needed) > 40
    assert sorted(needed - warm) == []


def test_what_is_imported_late_is_told_apart() -> None:
    assert f"{AGENT}.stage" not in reached([f"{AGENT}.session"], lazily=False)
    assert f"{AGENT}.stage" in reached([f"{AGENT}.session"], lazily=True)


def reached(names: Iterable[str], lazily: bool) -> set[str]:
    """The modules of the agent that come with these; `lazily`: also those that functions import when they are called."""
    found: set[str] = set()
    todo = [name for name in names if is_ours(name)]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            tree = ast.parse(path_of(name).read_text("utf-8"))
            todo += [each for each in imported_by(tree if lazily else top_of(tree)) if is_ours(each)]
    return found


def top_of(tree: ast.Module) -> ast.Module:
    """The statements that are executed with a module: no bodies of functions, nothing for type checkers."""
    kept = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return ast.Module(list(kept), [])


def imported_by(tree: ast.AST) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found += [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
    return found


def function_in(module: str, name: str) -> ast.FunctionDef:
    tree = ast.parse(path_of(module).read_text("utf-8"))
    return next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)


def is_ours(name: str) -> bool:
    return name.startswith(f"{AGENT}.") and path_of(name).is_file()


def path_of(name: str) -> Path:
    return SERVER / (name.replace(".", "/") + ".py")
