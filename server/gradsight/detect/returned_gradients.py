"""How many gradients the text of a custom backward returns: single expressions, tuples, and sums of tuples."""

from __future__ import annotations

import ast

from gradsight.interp.syntax import own_statements
from gradsight.interp.syntax_parts import syntax_parts

FunctionSyntax = ast.FunctionDef | ast.AsyncFunctionDef
TENSOR_METHODS = ("clone", "neg", "mul", "sum")
MOST_ELEMENTS = 64


def count_returned(backward: FunctionSyntax, wanted: int) -> tuple[int, ast.AST] | None:
    """The number of gradients that every return of backward gives, if they agree; torch takes None beyond the last."""
    returns = [inner for inner in own_statements(backward.body) if isinstance(inner, ast.Return)]
    counts = set()
    for statement in returns:
        value = statement.value
        if value is None:
            return None
        elements = elements_of(backward, value)
        if elements is not None:
            beyond = elements[wanted:]
            if not any(is_gradient(backward, element) for element in beyond):
                counts.add(min(len(elements), wanted))
            else:
                counts.add(len(elements))
        elif is_gradient(backward, value) or (isinstance(value, ast.Constant) and value.value is None):
            counts.add(1)
        else:
            return None
    return (counts.pop(), returns[-1]) if len(counts) == 1 else None


def elements_of(function: FunctionSyntax, value: ast.expr) -> list[ast.expr] | None:
    """The elements of what is a tuple of known length for certain: `(g,) + (None,) * 2`, `(g, *[None] * 2)`."""
    if isinstance(value, (ast.Tuple, ast.List)):
        found: list[ast.expr] = []
        for element in value.elts:
            if isinstance(element, ast.Starred):
                inner = elements_of(function, element.value)
                if inner is None:
                    return None
                found += inner
            else:
                found.append(element)
        return found
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        left, right = elements_of(function, value.left), elements_of(function, value.right)
        return left + right if left is not None and right is not None else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        for part, times in ((value.left, value.right), (value.right, value.left)):
            repeated = elements_of(function, part)
            if repeated is not None and isinstance(times, ast.Constant) and type(times.value) is int:
                return repeated * times.value if len(repeated) * times.value <= MOST_ELEMENTS else None
        return None
    if isinstance(value, ast.Name):
        bound = values_bound(function, value.id)
        if bound is not None and len(bound) == 1 and isinstance(bound[0], (ast.Tuple, ast.BinOp)):
            return elements_of(function, bound[0]) if value.id not in names_in(bound[0]) else None
    return None


def is_gradient(function: FunctionSyntax, value: ast.expr) -> bool:
    """Whether an expression is one tensor for certain: arithmetic, or a name for nothing else."""
    if isinstance(value, ast.Name):
        return single_gradient(function, value.id)
    return isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Subscript)) and not may_be_tuple(function, value)


def single_gradient(function: FunctionSyntax, name: str) -> bool:
    """Whether a local name is bound to one plain expression only."""
    values = values_bound(function, name)
    if values is None:
        return False
    if not values:
        return name in [argument.arg for argument in function.args.args]
    return all(
        (isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Subscript)) and not may_be_tuple(function, value, name))
        or (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr in TENSOR_METHODS
        )
        for value in values
    )  # fmt: skip


def may_be_tuple(function: FunctionSyntax, value: ast.expr, but: str = "") -> bool:
    """Whether an expression can be a tuple or list; `but` is the name whose value is asked for.

    Of the operators of arithmetic a tuple knows `+` with a tuple and `*` with a whole number.
    """
    if isinstance(value, ast.BinOp):
        left, right = may_be_tuple(function, value.left, but), may_be_tuple(function, value.right, but)
        if isinstance(value.op, ast.Add):
            return (left and right) or is_listed(value.left) or is_listed(value.right)
        if isinstance(value.op, ast.Mult):
            return (left and not is_tensor(function, value.right)) or (
                right and not is_tensor(function, value.left)
            )
        return False
    if isinstance(value, ast.Subscript):
        if not isinstance(value.slice, ast.Slice):
            return False
        return may_be_tuple(function, value.value, but)
    if isinstance(value, ast.Name):
        if function.args.vararg is not None and value.id == function.args.vararg.arg:
            return True
        bound = values_bound(function, value.id) if value.id != but else []
        return bound is not None and any(may_be_tuple(function, inner, value.id) for inner in bound)
    if isinstance(value, ast.Attribute):
        return value.attr in ("saved_tensors", "needs_input_grad")
    if isinstance(value, ast.Call):
        return not isinstance(value.func, ast.Attribute)
    if isinstance(value, ast.IfExp):
        return may_be_tuple(function, value.body, but) or may_be_tuple(function, value.orelse, but)
    return isinstance(value, (ast.Tuple, ast.List, ast.ListComp, ast.GeneratorExp))


def is_listed(value: ast.expr) -> bool:
    """Whether an expression is a tuple or list for certain; what is added to one is another."""
    if isinstance(value, ast.BinOp):
        return is_listed(value.left) or is_listed(value.right)
    return isinstance(value, (ast.Tuple, ast.List))


def is_tensor(function: FunctionSyntax, value: ast.expr) -> bool:
    """Whether an operand is a tensor for certain: a gradient that backward was given, or arithmetic on one."""
    if isinstance(value, ast.BinOp):
        return is_tensor(function, value.left) or is_tensor(function, value.right)
    given = [argument.arg for argument in function.args.args[1:]]
    return isinstance(value, ast.Name) and value.id in given and values_bound(function, value.id) == []


def values_bound(function: FunctionSyntax, name: str) -> list[ast.expr] | None:
    """What plain assignments bind a local name to; None if it is bound in another way: unpacked, augmented, by a loop."""
    values: list[ast.expr] = []
    stores = 0
    for inner in syntax_parts(function):
        if isinstance(inner, ast.Name) and inner.id == name and not isinstance(inner.ctx, ast.Load):
            stores += 1
        elif isinstance(inner, ast.Assign):
            values += [
                inner.value for target in inner.targets if isinstance(target, ast.Name) and target.id == name
            ]
    return values if stores == len(values) else None


def names_in(value: ast.expr) -> set[str]:
    return {inner.id for inner in syntax_parts(value) if isinstance(inner, ast.Name)}
