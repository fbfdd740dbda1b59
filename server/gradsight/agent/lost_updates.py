"""Updates that leave everything as it was: a new tensor under the name of a loop, or a tensor that is copied onto itself."""

from __future__ import annotations

import ast
import sys
from typing import Any

import torch

from gradsight.agent.faults import Fault, Ledger, quietly
from gradsight.agent.graph import geometry_of, storage_key
from gradsight.agent.sites import (
    FrameKey,
    Stack,
    capture,
    is_user_file,
    line_of,
    names_read,
    place_of,
    text_of,
    tree_of,
)

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)


class FutileUpdates:
    """Hears of names that are bound, and of copies."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._judged: set[tuple[FrameKey, str]] = set()

    @quietly
    def bound(self, name: str, value: torch.Tensor, stack: Stack) -> None:
        """A statement has bound this name to a tensor."""
        if not stack or (stack[0], name) in self._judged:
            return
        self._judged.add((stack[0], name))
        if value.is_floating_point() and _is_forgotten(stack[0], name):
            place = place_of(stack[0])
            message = f"this gives `{name}` a new value, and the loop takes the next one: nothing is written"
            self.ledger.add(Fault("update-lost", message, place, (), "warning", {"name": name}))

    @quietly
    def copied(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`target.copy_(source)`."""
        target, source = args[0], args[1] if len(args) > 1 else kwargs.get("other")
        if not isinstance(source, torch.Tensor) or target.layout is not torch.strided or target.numel() < 1:
            return
        key = storage_key(target)
        if not key or key != storage_key(source) or geometry_of(target) != geometry_of(source):
            return
        stack = capture(4)
        # What torch does with its own copies, when a state is loaded for example, is not the program's line.
        if stack and is_user_file(sys._getframe(4).f_code.co_filename):
            place = place_of(stack[0])
            message = f"`{text_of(place)}` copies a tensor onto itself: nothing changes"
            self.ledger.add(Fault("update-lost", message, place, (), "warning", {"itself": True}))


def _is_forgotten(frame: FrameKey, name: str) -> bool:
    """Whether a statement computes a new value for the name of its loop, and nothing reads the name after it."""
    tree, line = tree_of(frame.code.co_filename), line_of(frame)
    scope: ast.AST | None = tree
    loop: ast.For | None = None
    statement: ast.Assign | None = None
    for node in ast.walk(tree) if tree is not None else ():
        if not getattr(node, "lineno", 0) <= line <= getattr(node, "end_lineno", 0):
            continue
        if isinstance(node, _SCOPES):
            scope, loop = node, None
        elif isinstance(node, ast.For) and _names_in(node.target, name):
            loop = node
        elif isinstance(node, ast.Assign):
            statement = node
    if statement is None or scope is None or name not in names_read(statement):
        return False
    loop = loop or _loop_of_gradient(scope, statement, name)
    if loop is None:
        return False
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Name) or target.id != name:
        return False
    last = statement.end_lineno or statement.lineno
    # A loop around may come to an earlier line with the value that is left.
    return not any(
        isinstance(node, ast.Name)
        and node.id == name
        and not isinstance(node.ctx, ast.Store)
        and (node.lineno > last or node.lineno < loop.lineno)
        for node in ast.walk(scope)
    )


def _loop_of_gradient(scope: ast.AST, statement: ast.Assign, name: str) -> ast.For | None:
    """The loop in whose body the statement before this one reads a gradient under that name: `g = p.grad`."""
    for loop in ast.walk(scope):
        if isinstance(loop, ast.For) and statement in loop.body[1:]:
            before = loop.body[loop.body.index(statement) - 1]
            if isinstance(before, ast.Assign) and any(_names_in(each, name) for each in before.targets):
                is_read = isinstance(before.value, ast.Attribute) and before.value.attr == "grad"
                return loop if is_read else None
    return None


def _names_in(target: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))
