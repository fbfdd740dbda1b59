"""Methods that a class leaves to the classes that derive from it: what they return, nobody knows here.

*Placeholder*: a method that does nothing but say that others fill it in: it raises `NotImplementedError`, or it is declared
abstract, or its body is empty and the call wants a value of it.
"""

from __future__ import annotations

import ast

from gradsight.interp.syntax import remembered, statement_around
from gradsight.model.sites import Frame
from gradsight.model.values import Function, Value


def is_placeholder(method: Value, is_value_used: bool) -> bool:
    """Whether a method of a class is there for others to fill in."""
    if not isinstance(method, Function):
        return False
    kind: str = remembered(method.defined().node, "placeholder", _kind_of)
    return kind == "refuses" or (kind == "empty" and is_value_used)


def is_value_used(call: ast.AST, frame: Frame) -> bool:
    """Whether a call is more than a statement of its own."""
    statement = statement_around(call, frame)
    return not (isinstance(statement, ast.Expr) and statement.value is call)


def _kind_of(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> str:
    if isinstance(function, ast.Lambda):
        return ""
    body = [
        statement
        for statement in function.body
        if not isinstance(statement, ast.Pass)
        and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]
    if not body:
        return "refuses" if any(map(_says_abstract, function.decorator_list)) else "empty"
    return "refuses" if len(body) == 1 and _refuses(body[0]) else ""


def _says_abstract(decorator: ast.expr) -> bool:
    name = decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
    return name.startswith("abstract")


def _refuses(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Raise):
        return False
    error = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
    return isinstance(error, ast.Name) and error.id == "NotImplementedError"
