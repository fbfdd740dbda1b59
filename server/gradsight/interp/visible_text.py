"""What other texts can see of a method's body: whoever asks about a class looks for these, and for nothing else.

Roles, parts that are registered, attributes that other methods set: all of it is read from what has a dot in it, from names that
the file binds or `__init__` is given, from texts, and from the kinds of statements.  What a body does beside that
(`size = max(1, 2)`) is its own affair, and shows when the body is executed.
"""

from __future__ import annotations

import ast
from collections import Counter

from gradsight.model.sites import Unit

QUIET = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Pass)
"""Statements that may come and go."""
KINDS = (ast.stmt, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda, ast.NamedExpr)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
WHOLE = (*FUNCTIONS, ast.ClassDef, ast.Lambda, ast.Import, ast.ImportFrom, ast.With, ast.Attribute)
LOOKING = frozenset(
    "self super getattr setattr hasattr delattr vars locals globals eval exec dir __import__ __class__".split()
)
"""Names that lead to others which are not spelled."""
READ_WHOLE = frozenset({"__init__", "backward", "setup_context", "vjp", "jvp"})
"""Methods whose texts are looked at more closely."""


def may_change_inside(old: ast.AST, new: ast.AST, cls: ast.ClassDef, bound: frozenset[str]) -> bool:
    """Whether the new body of a method looks like the old one to everybody else; `bound`: the names that the file binds."""
    if not isinstance(old, FUNCTIONS) or not isinstance(new, FUNCTIONS) or old.name in READ_WHOLE:
        return False
    names = bound | LOOKING | given_to_init(cls)
    return seen_from_outside(old, names) == seen_from_outside(new, names)


def given_to_init(cls: ast.ClassDef) -> frozenset[str]:
    """The names of what objects of a class are made from."""
    signatures = [one.args for one in cls.body if isinstance(one, FUNCTIONS) and one.name == "__init__"]
    return frozenset(
        part.arg for signature in signatures for part in ast.walk(signature) if isinstance(part, ast.arg)
    )


def seen_from_outside(
    function: ast.FunctionDef | ast.AsyncFunctionDef, names: frozenset[str]
) -> Counter[str]:
    """How often a body has each thing that others look for."""
    seen: Counter[str] = Counter(told for statement in function.body for told in _told_by(statement, names))
    body = [one for one in function.body if not _is_text(one)]
    done = [one for one in body if not isinstance(one, ast.Pass)]
    seen["empty"] += not done
    seen["only raises"] += any(len(some) == 1 and isinstance(some[0], ast.Raise) for some in (body, done))
    last = function.body[-1]
    seen[f"ends with {type(last).__name__} {type(getattr(last, 'value', None)).__name__}"] += isinstance(
        last, ast.Return
    )
    return +seen


def _told_by(statement: ast.stmt, names: frozenset[str]) -> list[str]:
    told: list[str] = []
    todo: list[ast.AST] = [statement]
    while todo:
        part = todo.pop()
        if _is_told_whole(part, names):
            told.append(ast.dump(part))
        elif isinstance(part, KINDS) and not isinstance(part, QUIET):
            told.append(type(part).__name__)
        elif isinstance(part, ast.Name) and part.id in names:
            told.append(part.id)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            told.append(part.value)
        todo += ast.iter_child_nodes(part)
    return told


def _is_told_whole(part: ast.AST, names: frozenset[str]) -> bool:
    if isinstance(part, ast.Assign):
        return not all(isinstance(target, ast.Name) for target in part.targets)
    if not isinstance(part, ast.Call):
        return isinstance(part, WHOLE)
    return any(
        isinstance(one, ast.Attribute) or (isinstance(one, ast.Name) and one.id in names)
        for one in ast.walk(part)
    )


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def names_bound(unit: Unit) -> frozenset[str]:
    """The global names that executing a unit can bind."""
    if unit.binds is None:
        found: set[str] = set()
        for statement in unit.tree:
            _gather(statement, found)
        unit.binds = frozenset(found)
    return unit.binds


def _gather(node: ast.AST, found: set[str]) -> None:
    # Long sums and chains of calls are deep: there is no recursion.
    todo = [node]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((alias.asname or alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                found.add(node.id)
        else:
            if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
                found.add(node.name)
            todo.extend(ast.iter_child_nodes(node))
