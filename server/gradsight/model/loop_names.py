"""Names that a `for` binds anew in each round, and the values that are lost by it."""

from __future__ import annotations

import ast


def loses_at_round_end(loop: ast.AST, name: str, statement: ast.stmt) -> bool:
    """Whether a `for` binds the name in each round, and nothing in it reads the name after the statement."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)) or not binds(loop, name):
        return False
    last = statement.end_lineno or statement.lineno
    return not any(
        isinstance(inner, ast.Name)
        and inner.id == name
        and isinstance(inner.ctx, ast.Load)
        and inner.lineno > last
        for part in [*loop.body, *loop.orelse]
        for inner in ast.walk(part)
    )


def binds(loop: ast.AST, name: str) -> bool:
    """Whether a `for` has the name among its targets."""
    return isinstance(loop, (ast.For, ast.AsyncFor)) and any(
        isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(loop.target)
    )
