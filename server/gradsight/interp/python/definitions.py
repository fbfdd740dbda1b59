"""What the text of a definition says: whether a function yields, which names are not its own, whether a class is a module."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.python.statements import contains_yield
from gradsight.model.values import External, Function, Unknown


def is_module_text(node: ast.ClassDef, bases: list[Any]) -> bool:
    """Whether a class with a forward and a base that is not known is a module: its text makes layers, or calls the base's init."""
    if not any(
        isinstance(base, Unknown) or (isinstance(base, External) and is_foreign(base)) for base in bases
    ):
        return False
    return any(
        (isinstance(inner, ast.Name) and inner.id in ("super", "nn"))
        or (isinstance(inner, ast.Attribute) and inner.attr == "nn")
        for inner in ast.walk(node)
    )


def is_foreign(base: External) -> bool:
    """Whether a class comes from a library that is neither torch nor Python's own."""
    root = base.path.partition(".")[0]
    return root not in ("torch", "builtins", "typing", "abc", "enum", "collections", "dataclasses", "object")


def yields(function: Function) -> bool:
    """Whether it is a generator function; the text tells quickly when it is not."""
    node = function.node
    if "yield" not in function.unit.lines_between(node.lineno, node.end_lineno or node.lineno):
        return False
    return contains_yield(node)


def nonlocal_names(node: ast.AST) -> frozenset[str]:
    """Names the function declares nonlocal."""
    body = getattr(node, "body", [])
    if not isinstance(body, list):
        return frozenset()
    return frozenset(
        name for statement in body if isinstance(statement, ast.Nonlocal) for name in statement.names
    )
