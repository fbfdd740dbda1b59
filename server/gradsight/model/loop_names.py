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


def is_read_nowhere_else(scope: list[ast.stmt], loop: ast.stmt, name: str, statement: ast.stmt) -> bool:
    """Whether what a statement of a loop gives to a name is lost: nothing reads the name until it is bound anew.

    Statements before it, in the same round, are those that bind the name to what the statement starts from.
    """
    begin, last = place_of(loop), (statement.end_lineno or statement.lineno, statement.end_col_offset or 0)
    parts = [part for each in scope for part in ast.walk(each)]
    named = [part for part in parts if isinstance(part, ast.Name) and part.id == name]
    reads = [place_of(part) for part in named if not isinstance(part.ctx, ast.Store)]
    stores = [place_of(part) for part in named if isinstance(part.ctx, ast.Store)]
    within = min((place for place in stores if place >= begin), default=last)
    # Under a condition of its own a later binding need not come to pass.
    anew = [
        (part.lineno + 1, 0)
        for part in parts
        if isinstance(part, (ast.Assign, ast.For))
        and place_of(part) > last
        and part.col_offset <= statement.col_offset
        and any(inner is one for one in named for inner in targets_of(part))
    ]
    until = min(anew, default=None)
    return not any(
        (place > last and (until is None or place < until)) or begin <= place < within for place in reads
    )


def place_of(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return (node.lineno, node.col_offset)


def targets_of(statement: ast.Assign | ast.For) -> list[ast.AST]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [inner for target in targets for inner in ast.walk(target)]


def binds(loop: ast.AST, name: str) -> bool:
    """Whether a `for` has the name among its targets."""
    return isinstance(loop, (ast.For, ast.AsyncFor)) and any(
        isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(loop.target)
    )
