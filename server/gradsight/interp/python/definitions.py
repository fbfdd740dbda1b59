"""What the text of a definition says: whether a function yields and which names are not its own."""

from __future__ import annotations

import ast

from gradsight.interp.python.generators import contains_yield
from gradsight.model.values import Function


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
