"""What the text of a loop lets go of again: totals that start anew, lists that are emptied, values that are detached."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from gradsight.interp.syntax_parts import pairs, syntax_parts
from gradsight.model.sites import Site
from gradsight.model.values import ClassValue, Function

CUTTING = {"detach", "item", "tolist", "numpy"}
"""Methods whose result has no graph."""
EMPTYING = {"clear", "pop", "popleft", "detach_", "popitem"}
"""Methods after which a list holds less, or a tensor no graph."""
MANY_ROUNDS = 20
"""What is let go of after fewer rounds costs little."""


def is_let_go(place: ast.expr, site: Site) -> bool:
    """Whether the loop around a place also gives it a fresh value, or empties it, in some of its rounds.

    What is let go of outside the innermost loop grows with the rounds of that loop, and so does what is let go of in every
    hundredth round of it.
    """
    if not site.loops:
        return False
    loop = site.loops[-1][0].node
    body = list(often_reached([*loop.body, *loop.orelse], site))
    if any(lets_go(statement, place, site.node) for statement in body):
        return True
    owner = site.frame.owner
    if not isinstance(owner, ClassValue) or not isinstance(place, ast.Attribute):
        return False
    # `meter.reset()`: a method of the same class that the loop calls.
    called = {
        call.func.attr for call in body if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    }
    for name in sorted(called):
        method, _ = owner.find(name)
        if isinstance(method, Function) and not isinstance(method.node, ast.Lambda):
            if any(lets_go(statement, place, site.node) for statement in nodes_of(method.node.body)):
                return True
    return False


def lets_go(node: ast.AST, place: ast.expr, but: ast.AST) -> bool:
    """Whether a statement or call other than `but` makes `place` let go of what it held."""
    if node is but:
        return False
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if any(
                is_same(part, place) and is_fresh(value, place) for part, value in pairs(target, node.value)
            ):
                return True
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.slice, ast.Slice)
                and is_same(target.value, place)
            ):
                return True
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        return is_same(node.target, place) and is_fresh(node.value, place)
    elif isinstance(node, ast.Delete):
        return any(
            is_same(target, place) or (isinstance(target, ast.Subscript) and is_same(target.value, place))
            for target in node.targets
        )
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in EMPTYING and is_same(node.func.value, place)
    return False


def is_fresh(value: ast.expr, place: ast.expr) -> bool:
    """Whether a value has nothing of what the place held: it does not read it, or reads its number or a part of it."""
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        return True
    reads = [inner for inner in syntax_parts(value) if is_same(inner, place)]
    cut = [
        inner
        for call in syntax_parts(value)
        if isinstance(call, ast.Call) and (
            (isinstance(call.func, ast.Attribute) and call.func.attr in CUTTING)
            or (isinstance(call.func, ast.Name) and call.func.id in ("float", "int"))
        )
        for inner in syntax_parts(call)
        if is_same(inner, place)
    ]  # fmt: skip
    return len(cut) >= len(reads)


def is_same(node: ast.AST, place: ast.expr) -> bool:
    """Whether two expressions name one place; an attribute is told by its name, as its owner has one in each function."""
    if isinstance(place, ast.Attribute):
        return isinstance(node, ast.Attribute) and node.attr == place.attr
    if isinstance(place, ast.Name):
        return isinstance(node, ast.Name) and node.id == place.id
    return isinstance(node, ast.expr) and ast.unparse(node) == ast.unparse(place)


def is_among(parts: Iterable[ast.AST], place: ast.expr) -> bool:
    """Whether one of some expressions names the place."""
    if isinstance(place, ast.Name):
        name = place.id
        return name in {part.id for part in parts if isinstance(part, ast.Name)}
    if isinstance(place, ast.Attribute):
        name = place.attr
        return name in {part.attr for part in parts if isinstance(part, ast.Attribute)}
    alike = [part for part in parts if type(part) is type(place)]
    return bool(alike) and ast.unparse(place) in {ast.unparse(part) for part in alike}


def often_reached(body: list[ast.stmt], site: Site) -> Iterator[Any]:
    """The syntax of a loop without what only happens in every so many rounds: `if step % log_interval == 0: …`."""
    for statement in body:
        if isinstance(statement, ast.If):
            yield statement.test
            if not is_rare(statement.test, site) and not holds_once(statement):
                yield from often_reached(statement.body, site)
            yield from often_reached(statement.orelse, site)
        else:
            yield from syntax_parts(statement)


def holds_once(statement: ast.If) -> bool:
    """`if average is None: average = loss`: what the condition asks for is no longer so once it has held."""
    test = statement.test
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Is):
        return False
    is_none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
    return is_none and any(
        is_same(target, test.left) and not isinstance(inner.value, ast.Constant)
        for inner in nodes_of(statement.body)
        if isinstance(inner, ast.Assign)
        for target in inner.targets
    )


def is_rare(test: ast.expr, site: Site) -> bool:
    """Whether a condition holds in one round of many: what is counted is divided by a number that is not known to be small."""
    for part in syntax_parts(test):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
            period = part.right
            value = site.frame.namespace.get(period.id) if isinstance(period, ast.Name) else None
            value = period.value if isinstance(period, ast.Constant) else value
            if not isinstance(value, int) or value >= MANY_ROUNDS:
                return True
    return False


def nodes_of(body: list[ast.stmt]) -> Iterator[Any]:
    for statement in body:
        yield from syntax_parts(statement)
