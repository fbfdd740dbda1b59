"""What the arms of a condition bind and touch: which of them can matter to each other."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple

from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import syntax_parts

Condition = (ast.If, ast.IfExp)


class ArmTouch(NamedTuple):
    """Names, and attributes of `self`: those that are bound or written, and all that are named."""

    binds: frozenset[str]
    names: frozenset[str]


NOTHING = ArmTouch(frozenset(), frozenset())


def touch_of(node: ast.AST) -> ArmTouch:
    """What both arms of a condition touch."""
    if not isinstance(node, Condition):
        return NOTHING
    known: ArmTouch = remembered(node, "touch", lambda one: _touch([*arm_of(one, True), *arm_of(one, False)]))
    return known


def touch_of_arm(node: ast.AST, outcome: bool) -> ArmTouch:
    """What one arm of a condition touches."""
    if not isinstance(node, Condition):
        return NOTHING
    known: ArmTouch = remembered(node, f"touch_{outcome}", lambda one: _touch(arm_of(one, outcome)))
    return known


def arm_of(node: ast.AST, outcome: bool) -> list[ast.AST]:
    """What is executed if the condition is taken to be so; an `elif` is a condition of its own."""
    arm = getattr(node, "body" if outcome else "orelse", [])
    if not isinstance(arm, list):
        return [arm]
    return [] if not outcome and is_elif(node) else arm


def is_elif(node: ast.AST) -> bool:
    """Whether an `elif` follows, or an `else` with nothing but another condition in it."""
    return isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)


def _touch(arm: Iterable[ast.AST]) -> ArmTouch:
    binds: set[str] = set()
    names: set[str] = set()
    for statement in arm:
        if isinstance(statement, ast.If):
            # Conditions in conditions: each is read once, and not again for every one around it.
            inner: ArmTouch = remembered(statement, "touch of all", _touch_of_chain)
            binds |= inner.binds
            names |= inner.names
            continue
        for node in syntax_parts(statement):
            if isinstance(node, ast.Call):
                target = node.func
                if isinstance(target, ast.Attribute) and target.attr.endswith("_"):
                    binds.add(root_of(target.value))
            elif isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
                name = root_of(node)
                names.add(name)
                if not isinstance(node.ctx, ast.Load):
                    binds.add(name)
    return ArmTouch(frozenset(binds - {"", "self"}), frozenset(names - {"", "self"}))


def _touch_of_chain(condition: ast.AST) -> ArmTouch:
    """What an `if` touches with its test, its arms and every `elif` that follows."""
    assert isinstance(condition, ast.If)
    parts: list[ast.AST] = []
    while is_elif(condition):
        parts += [condition.test, *condition.body]
        condition = condition.orelse[0]
        assert isinstance(condition, ast.If)
    return _touch([*parts, condition.test, *condition.body, *condition.orelse])


def root_of(node: ast.expr) -> str:
    """`h` of `h.data[0]`, `self.h` of `self.h[0]`."""
    last = ""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            last = node.attr
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return f"self.{last}" if node.id == "self" and last else node.id
