"""Functions that a script hands to a library to begin with: `fire.Fire(main)`, `CLI(setup)`, `typer.run(train)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradsight.model.sites import Unit

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def is_start(units: Sequence[Unit], name: str) -> bool:
    """Whether the top level hands a function, by its bare name, to something that the file does not define."""
    return any(
        isinstance(given, ast.Name) and given.id == name
        for unit in units
        for statement in unit.tree
        for call in _calls_in(statement)
        if isinstance(call.func, (ast.Name, ast.Attribute))
        for given in call.args
    )


def _calls_in(node: ast.AST) -> Iterator[ast.Call]:
    """The calls that stand as statements of their own, in no function and no class."""
    if isinstance(node, DEFINITIONS):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node.value
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield from _calls_in(child)
