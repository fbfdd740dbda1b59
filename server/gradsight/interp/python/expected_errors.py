"""Errors that a program provokes and catches: `try` with a handler for them, `raises(...)`, `suppress(...)`.

A handler that raises again, or that waits for another mishap (memory that runs out), expects none of torch's refusals;
one for any exception around a loop, a whole step of training or a whole program is a safety net.
"""

from __future__ import annotations

import ast
import re

from gradsight.interp.path_state import RaisedError
from gradsight.interp.syntax import own_statements, remembered
from gradsight.interp.syntax_parts import parts_of, syntax_parts
from gradsight.model.library_objects import GeneratorContext, RaisedObject
from gradsight.model.name_hints import suggests
from gradsight.model.sites import Frame, Site
from gradsight.model.values import Function, Instance, Value

SPECIFIC = {"RuntimeError"}
"""What torch raises when it refuses."""
BROAD = {"Exception", "BaseException"}
OTHER_MISHAPS = re.compile(r"memory|oom\b|cuda|print_exc|format_exc|\.exception\(|exit\(", re.IGNORECASE)
MOST_STATEMENTS = 8


def expects_error(node: ast.Try) -> str:
    """What a `try` expects: `specific` errors, `broad` ones, or nothing."""
    return str(remembered(node, "expects_error", _expects_error))


def _expects_error(node: ast.Try) -> str:
    size = sum(1 for _ in own_statements(node.body))
    if size > MOST_STATEMENTS:
        return ""
    for handler in node.handlers:
        text = "\n".join(ast.unparse(statement) for statement in handler.body)
        if any(isinstance(inner, ast.Raise) for inner in own_statements(handler.body)):
            continue
        if OTHER_MISHAPS.search(text):
            continue
        names = names_of(handler.type)
        if names & SPECIFIC:
            return "specific"
        if (handler.type is None or names & BROAD) and not is_work(node.body):
            return "broad"
    return ""


def is_work(body: list[ast.stmt]) -> bool:
    """Whether statements are the program's own work, with a loop or a step of training, and no trial."""
    return any(isinstance(inner, (ast.For, ast.While)) for inner in own_statements(body)) or any(
        isinstance(part, ast.Call) and suggests("step of training", getattr(part.func, "attr", ""))
        for statement in body
        for part in syntax_parts(statement)
    )


def end_if_none(node: ast.Assert, value: Value, site: Site) -> None:
    """`assert w.grad is not None`: where there is none, the program goes no further."""
    test = node.test
    if value is False and isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot):
        if isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None:
            raise RaisedError(RaisedObject("AssertionError", site))


def names_of(kinds: ast.expr | None) -> set[str]:
    """The last names of the exceptions that a handler or a call names."""
    parts = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    return {getattr(part, "id", getattr(part, "attr", "")) for part in parts if part is not None}


def waits_for_error(context: ast.expr, value: Value) -> bool:
    """Whether a context swallows the errors of its block: `pytest.raises(...)`, `suppress(...)`, one of the program's own."""
    if isinstance(value, Instance):
        leave, _ = value.cls.find("__exit__")
        return isinstance(leave, Function) and swallows(leave.node)
    if isinstance(value, GeneratorContext):
        return value.catches
    if not isinstance(context, ast.Call):
        return False
    name = getattr(context.func, "attr", getattr(context.func, "id", ""))
    if not suggests("expects an error", name):
        return False
    names = set().union(*(names_of(argument) for argument in context.args[:1])) if context.args else set()
    return not names or bool(names & (SPECIFIC | BROAD)) or "" in names


def swallows(leave: ast.AST) -> bool:
    """Whether `__exit__` returns something that can be true."""
    body = getattr(leave, "body", [])
    return isinstance(body, list) and any(
        isinstance(inner, ast.Return)
        and inner.value is not None
        and not (isinstance(inner.value, ast.Constant) and not inner.value.value)
        for inner in own_statements(body)
    )


def catches_at_yield(function: ast.AST) -> bool:
    """Whether a generator context catches what is raised where it yields."""
    return any(
        isinstance(inner, ast.Try)
        and any(isinstance(part, ast.Yield) for statement in inner.body for part in syntax_parts(statement))
        and bool(expects_error(inner))
        for inner in syntax_parts(function)
    )


def waits_for(node: ast.AST, frame: Frame, error: str) -> bool:
    """Whether a `try` around a statement of the running function catches an error by its name."""
    scopes = [frame.function.node] if frame.function is not None else frame.unit.tree
    return any(
        any(error in names_of(handler.type) for handler in attempt.handlers)
        and any(node is part for statement in attempt.body for part in syntax_parts(statement))
        for scope in scopes
        for attempt in parts_of(scope, ast.Try)
    )
