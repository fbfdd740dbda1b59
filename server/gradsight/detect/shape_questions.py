"""Reads that ask only about the shape of a tensor, its device or its type: they see nothing of what is in it.

    hidden = embeds                             def make_mask(embeds, length):
    hidden = F.dropout(hidden, inplace=True)        rows = embeds.shape[0]
    mask = make_mask(embeds, 4)                     return torch.ones(rows, length, device=embeds.device)

`make_mask` is given a tensor that was overwritten, and makes the same of it.  A question to the syntax tree of the function that
is called, and of those of its file that it hands the tensor to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import cast

from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.sites import Frame
from gradsight.model.values import Function, Names, Scope

ABOUT_SHAPE = {
    "shape",
    "size",
    "dim",
    "ndim",
    "numel",
    "device",
    "dtype",
    "requires_grad",
    "is_leaf",
    "grad_fn",
    "stride",
}
ASKING = ("len", "isinstance", "id")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def asks_about_shape(name: ast.AST, statement: ast.AST, frame: Frame) -> bool:
    """Whether a name is loaded only to ask for its shape, its device, or whether it is None."""
    parent = remembered(statement, "parents", parents_in).get(name)
    if isinstance(parent, ast.keyword):
        parent = remembered(statement, "parents", parents_in).get(parent)
    return asks_itself(name, parent) or (
        isinstance(parent, ast.Call) and is_given_for_shape(name, parent, frame.scope, frozenset())
    )


def asks_itself(name: ast.AST, parent: ast.AST | None) -> bool:
    """Whether the expression around a name asks only about its shape, or whether it is None."""
    if isinstance(parent, ast.Attribute):
        return parent.attr in ABOUT_SHAPE
    if isinstance(parent, ast.Compare):
        return all(isinstance(op, (ast.Is, ast.IsNot)) for op in parent.ops)
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in ASKING


def is_given_for_shape(
    name: ast.AST, call: ast.Call, scope: Scope | None, asked: frozenset[tuple[ast.AST, str]]
) -> bool:
    """Whether a call hands a tensor to a function that asks only about its shape."""
    known = definition_of(call.func, scope)
    if known is None:
        return False
    function, around = known
    parameter = parameter_for(name, call, function)
    if not parameter or (function, parameter) in asked:
        # A function that calls itself asks what the rest of it asks.
        return bool(parameter)
    return only_asks(function, parameter, around, asked | {(function, parameter)})


def definition_of(callee: ast.expr, scope: Scope | None) -> tuple[Definition, Scope] | None:
    """The function that a plain name stands for, with the names that it sees."""
    while isinstance(callee, ast.Name) and scope is not None:
        found = scope.names.get(callee.id)
        if isinstance(found, Function):
            is_plain = not found.wrappers and not found.binding
            return (found.node, found.scope) if is_plain else None
        units = scope.names.waiting.get(callee.id, []) if isinstance(scope.names, Names) else []
        if len(units) == 1 and len(units[0].tree) == 1:
            definition = units[0].tree[0]
            is_plain = isinstance(definition, ast.FunctionDef) and not definition.decorator_list
            return (definition, scope) if isinstance(definition, ast.FunctionDef) and is_plain else None
        if callee.id in scope.names:
            return None
        scope = scope.outer
    return None


def parameter_for(name: ast.AST, call: ast.Call, function: Definition) -> str:
    """The parameter that a name is given to; empty if that is not known."""
    signature = function.args
    positional = [one.arg for one in (*signature.posonlyargs, *signature.args)]
    named = {one.arg for one in (*signature.args, *signature.kwonlyargs)}
    for index, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred):
            return ""
        if argument is name:
            return positional[index] if index < len(positional) else ""
    by_name = [keyword.arg for keyword in call.keywords if keyword.value is name]
    return by_name[0] if by_name and by_name[0] in named else ""


def only_asks(
    function: Definition, parameter: str, scope: Scope, asked: frozenset[tuple[ast.AST, str]]
) -> bool:
    """Whether a function asks only about the shape of what it gets as a parameter, under each name that it has for it."""
    parents = remembered(function, "parents", parents_in)
    names, todo = {parameter}, [parameter]
    while todo:
        for node in loads_of(todo.pop(), function):
            parent, child = parents.get(node), cast("ast.AST", node)
            if isinstance(parent, ast.keyword):
                parent = parents.get(parent)
            if asks_itself(node, parent):
                continue
            while isinstance(parent, ast.IfExp) and child is not parent.test:
                child = parent
                parent = parents.get(child)
            if isinstance(parent, ast.Assign) and all(isinstance(one, ast.Name) for one in parent.targets):
                new = {one.id for one in parent.targets if isinstance(one, ast.Name)} - names
                names |= new
                todo += sorted(new)
            elif not isinstance(parent, ast.Call) or not is_given_for_shape(child, parent, scope, asked):
                return False
    return True


def loads_of(name: str, function: Definition) -> Iterator[ast.Name]:
    for node in syntax_parts(function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield node


def parents_in(node: ast.AST) -> dict[ast.AST, ast.AST]:
    """The node around each node."""
    return {child: one for one in syntax_parts(node) for child in ast.iter_child_nodes(one)}
