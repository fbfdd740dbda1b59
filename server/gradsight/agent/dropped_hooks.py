"""Hooks that compute a new gradient and do not return it: the old one goes on."""

from __future__ import annotations

import ast
from typing import Any

import torch

from gradsight.agent.definitions import place_of_expression
from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.sites import FrameKey, capture, is_user_file, line_of, tree_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class DroppedHooks:
    """Looks at the function of every hook on a tensor, once."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._known: set[Any] = set()

    @quietly
    def registered(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`tensor.register_hook(hook)`."""
        hook = args[1] if len(args) > 1 else kwargs.get("hook")
        code = getattr(getattr(hook, "__func__", hook), "__code__", None)
        if code is None or code in self._known or not is_user_file(code.co_filename):
            return
        self._known.add(code)
        lost = _lost_result(code)
        if lost is None or not isinstance(args[0], torch.Tensor):
            return
        name, value = lost
        place = place_of_expression(FrameKey(code, 0), value)
        message = f"the hook returns nothing, so `{name}` goes on as it came: return the new gradient"
        steps = step_at("call", "the hook is registered here", capture(5))
        self.ledger.add(Fault("gradient-edited", message, place, steps, "warning", {"argument": name}))


def _lost_result(code: Any) -> tuple[str, ast.expr] | None:
    """The argument that a hook binds anew as the last thing that it does with it, and the value it gets."""
    tree = tree_of(code.co_filename)
    names = code.co_varnames[: code.co_argcount]
    given = next((name for name in names if name not in ("self", "cls")), "")
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            if code.co_firstlineno in (node.lineno, *(each.lineno for each in node.decorator_list)):
                return _last_binding(node, given)
    return None


def _last_binding(function: ast.FunctionDef, name: str) -> tuple[str, ast.expr] | None:
    inner = [node for statement in function.body for node in _own_nodes(statement)]
    if any(isinstance(node, (ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)) for node in inner):
        return None
    if any(isinstance(node, ast.Return) and node.value is not None for node in inner):
        return None
    bindings = [
        node
        for node in inner
        if isinstance(node, ast.Assign)
        and [target.id for target in node.targets if isinstance(target, ast.Name)] == [name]
        and any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node.value))
    ]
    if not bindings:
        return None
    last = max(bindings, key=lambda node: node.lineno)
    reads_later = any(
        isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Load)
        and node.lineno > (last.end_lineno or last.lineno)
        for node in ast.walk(function)
    )
    return None if reads_later else (name, last.value)


def rebinds_before(frame: FrameKey, name: str) -> bool:
    """Whether the function of a frame has given its argument another meaning: `grad = grad.clone()`."""
    tree, line = tree_of(frame.code.co_filename), line_of(frame)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == frame.code.co_name:
            if node.lineno <= line <= (node.end_lineno or 0) and any(
                isinstance(each, ast.Name)
                and each.id == name
                and isinstance(each.ctx, ast.Store)
                and each.lineno < line
                for each in ast.walk(node)
            ):
                return True
    return False


def _own_nodes(statement: ast.stmt) -> list[ast.AST]:
    """The nodes of a statement, those of functions inside it left out."""
    found: list[ast.AST] = []
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        found.append(node)
        if not isinstance(node, _FUNCTIONS):
            todo.extend(ast.iter_child_nodes(node))
    return found
