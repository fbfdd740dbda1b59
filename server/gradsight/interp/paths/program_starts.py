"""Functions that a script hands to a library to begin with: `fire.Fire(main)`, `CLI(setup)`, `typer.run(train)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradsight.model.sites import Unit

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def names_started(units: Sequence[Unit]) -> set[str]:
    """The bare names that the top level hands to calls which stand as statements of their own."""
    return {
        given.id
        for unit in units
        for statement in unit.tree
        for call in _calls_in(statement)
        for given in call.args
        if isinstance(given, ast.Name)
    }


def _calls_in(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls that stand as statements of their own, in no function and no class."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        if isinstance(node, DEFINITIONS):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node.value
        todo.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt))
