"""Derivatives that a custom backward asks for of what it computes itself: it runs with grad mode off, and records nothing.

```python
def backward(ctx, grad):
    x, w = ctx.saved_tensors
    out = (x.detach().requires_grad_() * w).sum()   # no graph: a backward records nothing
    return torch.autograd.grad(out, ...)
```
"""

from __future__ import annotations

import ast

from gradsight.interp.syntax import own_statements
from gradsight.interp.syntax_parts import parts_of, syntax_parts
from gradsight.model.values import External, Function, Scope

SWITCHES = {"enable_grad", "set_grad_enabled", "checkpoint"}
"""What switches grad mode on, or may."""


def inner_derivatives(method: Function) -> list[tuple[ast.Call, ast.Assign]]:
    """Each `autograd.grad` in the text of a backward, with the statement that computes what it differentiates.

    Nothing where anything in the text may switch grad mode on, or where the value may come from elsewhere: from `ctx`, or from
    a function of the program, which may switch it on by itself.
    """
    backward = method.node
    if isinstance(backward, ast.Lambda):
        return []
    parts = list(syntax_parts(backward))
    named = {part.attr for part in parts if isinstance(part, ast.Attribute)}
    if SWITCHES & (named | {part.id for part in parts if isinstance(part, ast.Name)}):
        return []
    made = {
        statement.targets[0].id: statement
        for statement in own_statements(backward.body)
        if isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
    }
    context = backward.args.args[0].arg if backward.args.args else ""
    found = []
    for call in parts_of(backward, ast.Call):
        if not call.args or path_in_library(call.func, method) != "torch.autograd.grad":
            continue
        first = call.args[0]
        statement = made.get(first.id) if isinstance(first, ast.Name) else None
        if statement is not None and is_computed(statement.value, context, method):
            found.append((call, statement))
    return found


def is_computed(value: ast.expr, context: str, method: Function) -> bool:
    """Whether an expression only applies operators and methods to what it has by name."""
    if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)):
        return False
    for part in syntax_parts(value):
        if isinstance(part, ast.Name) and part.id == context:
            return False
        if isinstance(part, ast.Call) and not is_of_torch_or_method(part.func, method):
            return False
    return True


def is_of_torch_or_method(function: ast.expr, method: Function) -> bool:
    if path_in_library(function, method).startswith("torch."):
        return True
    if not isinstance(function, ast.Attribute):
        return False
    root: ast.expr = function
    while isinstance(root, ast.Attribute):
        root = root.value
    return not isinstance(root, ast.Name) or isinstance(function.value, ast.Name)


def path_in_library(expression: ast.expr, method: Function) -> str:
    """`torch.autograd.grad`, whatever the text calls it; empty for what is of no library."""
    members: list[str] = []
    while isinstance(expression, ast.Attribute):
        members.insert(0, expression.attr)
        expression = expression.value
    scope: Scope | None = method.scope
    while isinstance(expression, ast.Name) and scope is not None:
        if expression.id in scope.names:
            known = scope.names[expression.id]
            return ".".join([known.path, *members]) if isinstance(known, External) else ""
        scope = scope.outer
    return ""
