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

SWITCHES = {"enable_grad", "set_grad_enabled", "checkpoint"}
"""What switches grad mode on, or may."""


def inner_derivatives(backward: ast.FunctionDef | ast.AsyncFunctionDef) -> list[tuple[ast.Call, ast.Assign]]:
    """Each `autograd.grad` in the text of a backward, with the statement that computes what it differentiates.

    Nothing where anything in the text may switch grad mode on, or where the value may come from elsewhere: from `ctx`, or from
    a function of the program, which may switch it on by itself.
    """
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
        function = call.func
        if not (isinstance(function, ast.Attribute) and function.attr == "grad" and call.args):
            continue
        if ast.unparse(function.value) not in ("torch.autograd", "autograd"):
            continue
        first = call.args[0]
        statement = made.get(first.id) if isinstance(first, ast.Name) else None
        if statement is not None and is_computed(statement.value, context):
            found.append((call, statement))
    return found


def is_computed(value: ast.expr, context: str) -> bool:
    """Whether an expression only applies operators and methods to what it has by name."""
    if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)):
        return False
    for part in syntax_parts(value):
        if isinstance(part, ast.Name) and part.id == context:
            return False
        if isinstance(part, ast.Call) and not is_of_torch_or_method(part.func):
            return False
    return True


def is_of_torch_or_method(function: ast.expr) -> bool:
    if not isinstance(function, ast.Attribute):
        return False
    root: ast.expr = function
    while isinstance(root, ast.Attribute):
        root = root.value
    return not isinstance(root, ast.Name) or root.id in ("torch", "F") or isinstance(function.value, ast.Name)
