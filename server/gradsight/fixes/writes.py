"""The in-place operations of a statement.

A *write* is one in-place operation; its *target* is the expression that is written.  A *chain* is one in-place method
called on the result of another: `x.mul_(a).add_(b)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradsight.fixes.flags import flag_of
from gradsight.fixes.forms import FUNCTION_CLONES, FUNCTION_TWINS, INITS, INPLACE
from gradsight.fixes.kinds import is_plainly_tensor
from gradsight.fixes.names import FUNCTIONAL, meaning, method_of
from gradsight.fixes.tree import Tree


@dataclass(frozen=True, slots=True)
class WriteStatement:
    """One in-place operation: `form` is augmented, item, method, function, init, flag, layer or out."""

    form: str
    node: ast.AST
    target: ast.AST | None


def writes_in(tree: Tree, statement: ast.stmt) -> Iterator[WriteStatement]:
    """The in-place operations of a statement itself, not of the blocks inside it."""
    if isinstance(statement, ast.AugAssign):
        yield WriteStatement("augmented", statement, statement.target)
    if isinstance(statement, ast.Assign):
        yield from (WriteStatement("item", statement, one) for one in _items(tree, statement))
    for node in _own_expressions(statement):
        if isinstance(node, ast.Call) and not _is_link(tree, node):
            write = call_write(tree, node)
            if write is not None:
                yield write


def _items(tree: Tree, statement: ast.Assign) -> Iterator[ast.Subscript]:
    """The items that are assigned.  Among several targets most are items of a list, so a tensor must be plainly one."""
    if len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Subscript):
        yield statement.targets[0]
        return
    waiting: list[ast.expr] = list(statement.targets)
    while waiting:
        target = waiting.pop(0)
        if isinstance(target, (ast.Tuple, ast.List)):
            waiting.extend(target.elts)
        elif isinstance(target, ast.Subscript) and is_plainly_tensor(tree, target.value, statement):
            yield target


def _own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement itself; a lambda is a function of its own."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        inside = ast.iter_child_nodes(waiting.pop(0))
        own = [child for child in inside if not isinstance(child, (ast.stmt, ast.Lambda))]
        yield from own
        waiting.extend(own)


def _is_link(tree: Tree, call: ast.Call) -> bool:
    """Whether a call is the receiver of a further in-place method: `x.mul_(a)` in `x.mul_(a).add_(b)`."""
    attribute = tree.parents.get(call)
    outer = tree.parents.get(attribute) if isinstance(attribute, ast.Attribute) else None
    return isinstance(outer, ast.Call) and outer.func is attribute and method_of(outer) in INPLACE


def call_write(tree: Tree, call: ast.Call) -> WriteStatement | None:
    """The write that a call does, if it does one."""
    name = meaning(tree, call.func)
    if flag_of(tree, call) is not None:
        if name.rpartition(".")[2][:1].isupper():
            return WriteStatement("layer", call, None)
        return _with_target("flag", call, "input")
    for keyword in call.keywords:
        if keyword.arg == "out" and name.startswith("torch."):
            return WriteStatement("out", call, keyword.value)
    if name:
        package, _, last = name.rpartition(".")
        if package == "torch.nn.init" and last in INITS:
            return _with_target("init", call, "tensor")
        if package in ("torch", FUNCTIONAL) and last in FUNCTION_TWINS | FUNCTION_CLONES:
            return _with_target("function", call, "input")
        if package == "torch.Tensor" and last in INPLACE:
            return _with_target("function", call, "self")
        return None
    if method_of(call) in INPLACE:
        return WriteStatement("method", call, call.func.value)  # type: ignore[attr-defined]
    return None


def _with_target(form: str, call: ast.Call, name: str) -> WriteStatement | None:
    """A write to the first argument of a call, which may be given by its name."""
    if call.args:
        return WriteStatement(form, call, call.args[0]) if not isinstance(call.args[0], ast.Starred) else None
    target = next((word.value for word in call.keywords if word.arg == name), None)
    return WriteStatement(form, call, target) if target is not None else None


def chain_root(call: ast.AST) -> ast.AST:
    """What the first in-place method of a chain is called on."""
    node = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in INPLACE:
        node = node.func.value
    return node


def links(call: ast.AST) -> Iterator[ast.Call]:
    """The calls of a chain, the last one first."""
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in INPLACE:
        yield call
        call = call.func.value
