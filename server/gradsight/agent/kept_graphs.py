"""Who keeps a graph that backward has freed, found when it is too late: in the variables of the running program and in its text.

Nothing is noted while the program runs.  An error is explained by the objects that still hold the old graph and by the
statements that put tensors there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from gradsight.agent.definitions import place_of_expression
from gradsight.agent.faults import FaultStep
from gradsight.agent.graph import Node
from gradsight.agent.sites import FrameKey, is_user_file, statement_of, tree_of, user_frames

_MOST_ITEMS = 500
_MOST_OBJECTS = 4000
_DEPTH = 4
PUTS = frozenset(("append", "appendleft", "extend", "insert", "add", "push", "put", "update", "setdefault"))
_NO_HOLDERS = (type, ModuleType, FunctionType, MethodType, BuiltinFunctionType, str, bytes)


def keepers(old: Node, crossing: FrameKey) -> tuple[FaultStep, ...]:
    """The statements that put a tensor of this node into the object which still has it."""
    for holder, name in _holders(old):
        found = [
            FaultStep("made", f"`{name}` keeps the tensor with its graph", place)
            for place in _puts(crossing, holder, name)
        ]
        if found:
            return tuple(found[:2])
    return ()


def dropped_detach(crossing: FrameKey) -> tuple[FaultStep, ...]:
    """`h.detach()` as a statement, for a name that the crossing line reads: the result goes nowhere."""
    tree, statement = tree_of(crossing.code.co_filename), statement_of(crossing)
    if tree is None or statement is None:
        return ()
    read = {ast.unparse(node) for node in ast.walk(statement) if isinstance(node, (ast.Name, ast.Attribute))}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            continue
        function = node.value.func
        if isinstance(function, ast.Attribute) and function.attr == "detach" and not node.value.args:
            owner = ast.unparse(function.value)
            if owner in read:
                text = f"the result of `{owner}.detach()` is not used: `{owner}` keeps its graph"
                return (FaultStep("made", text, place_of_expression(crossing, node.value)),)
    return ()


def _holders(old: Node) -> Iterator[tuple[Any, str]]:
    """Objects of the running program with the name of the attribute or variable that has a tensor of this node."""
    seen: set[int] = set()
    todo: list[tuple[Any, Any, str, int]] = []
    for frame in user_frames():
        for scope in (frame.f_locals, frame.f_globals):
            todo += [
                (None, value, name, 0) for name, value in list(scope.items()) if not name.startswith("__")
            ]
    while todo and len(seen) < _MOST_OBJECTS:
        holder, value, name, depth = todo.pop(0)
        if isinstance(value, torch.Tensor):
            if value.grad_fn is old and (holder is not None or depth):
                yield holder, name
            continue
        if depth > _DEPTH or id(value) in seen or isinstance(value, _NO_HOLDERS):
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            items = list(value.values())[:_MOST_ITEMS]
        elif isinstance(value, (list, tuple, set)) or type(value).__name__ == "deque":
            items = list(value)[:_MOST_ITEMS]
        else:
            if hasattr(value, "__dict__") and is_user_file(_file_of(type(value))):
                todo += [(value, each, key, depth + 1) for key, each in list(vars(value).items())]
            continue
        todo += [(holder, each, name, depth + 1) for each in items]


def _file_of(kind: type) -> str:
    for member in vars(kind).values():
        code = getattr(member, "__code__", None)
        if code is not None:
            return str(code.co_filename)
    return "<none>"


def _puts(crossing: FrameKey, holder: Any, name: str) -> Iterator[Any]:
    """The statements that put something into `name`, in the file of the line that met the old graph."""
    tree = tree_of(crossing.code.co_filename)
    for node in ast.walk(tree) if tree is not None else ():
        target: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PUTS:
            target = node.func.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Subscript, ast.Attribute)):
            first = node.targets[0]
            target = first.value if isinstance(first, ast.Subscript) else first
        if target is not None and _is_named(target, name, holder is not None):
            if not (
                isinstance(node, ast.Assign) and isinstance(node.value, (ast.Constant, ast.List, ast.Dict))
            ):
                yield place_of_expression(crossing, node if isinstance(node, ast.Call) else target)


def _is_named(target: ast.expr, name: str, is_attribute: bool) -> bool:
    if is_attribute:
        return isinstance(target, ast.Attribute) and target.attr == name
    return isinstance(target, ast.Name) and target.id == name
