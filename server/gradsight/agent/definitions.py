"""What the source says around a running frame: the decorators of its function, and where an operator is only named."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from gradsight.agent.faults import FaultStep, step_at
from gradsight.agent.sites import (
    FrameKey,
    SourceRange,
    Stack,
    place_of,
    statement_at,
    statement_of,
    text_of,
    tree_of,
)


def decorator_of(key: FrameKey, wanted: Callable[[ast.expr], bool]) -> SourceRange | None:
    """The wanted decorator of the function that a frame runs."""
    tree = tree_of(key.code.co_filename)
    if tree is None:
        return None
    statement = statement_at(key.code.co_filename, key.code.co_firstlineno)
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name != key.code.co_name:
            continue
        first = min([node.lineno] + [item.lineno for item in node.decorator_list])
        if (
            first != key.code.co_firstlineno
            and node.lineno != key.code.co_firstlineno
            and node is not statement
        ):
            continue
        for item in node.decorator_list:
            if wanted(item):
                return place_of_expression(key, item)
    return None


def caches(decorator: ast.expr) -> bool:
    """Whether a decorator keeps results: `functools.cache`, `lru_cache(...)`, `cached_property`, somebody's `memoize`."""
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    text = name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
    return "cache" in text.lower() or "memo" in text.lower()


def named_elsewhere(key: FrameKey, operator: str) -> SourceRange | None:
    """Where the one reference to an operator stands that a frame calls by another name: `partial(torch.clamp_, min=0)`.

    Nothing when the running line calls no plain variable, or when several places could be meant.
    """
    tree = tree_of(key.code.co_filename)
    if tree is None or not _calls_a_variable(text_of(place_of(key), limit=10_000), operator):
        return None
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = [node for node in _references(tree, operator) if id(node) not in called]
    return place_of_expression(key, found[0]) if len(found) == 1 else None


_CONSTRUCTORS = frozenset(
    ("tensor", "as_tensor", "asarray", "from_numpy", "new_tensor", "Tensor", "FloatTensor")
)


def builds_a_tensor(statement: ast.stmt | None) -> bool:
    """Whether a statement makes a tensor of something that is not written down there: `torch.tensor(score(x))`."""
    for node in ast.walk(statement) if isinstance(statement, ast.Assign) else ():
        if isinstance(node, ast.Call) and node.args and not isinstance(node.args[0], ast.Constant):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _CONSTRUCTORS:
                return True
    return False


def step_named(role: str, message: str, stack: Stack, operator: str) -> tuple[FaultStep, ...]:
    """The step of a trail where an operator is named, though another line runs it."""
    place = named_elsewhere(stack[0], operator) if stack else None
    return (FaultStep(role, message, place),) if place is not None else step_at(role, message, stack)


def _calls_a_variable(text: str, operator: str) -> bool:
    """`f(x)` calls whatever somebody put into `f`."""
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError:
        return False
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id != operator


def earlier_readers(
    key: FrameKey, was_visited: Callable[[str, int], bool]
) -> tuple[SourceRange, SourceRange] | None:
    """Of the variable that a running call gets first: the statement that bound it, and another one that read it."""
    filename = key.code.co_filename
    tree, statement = tree_of(filename), statement_of(key)
    calls = (
        [node for node in ast.walk(statement) if isinstance(node, ast.Call)] if statement is not None else []
    )
    given = [
        value
        for call in calls
        for value in (*call.args[:1], *(word.value for word in call.keywords if word.arg == "params"))
        if isinstance(value, (ast.Name, ast.Attribute))
    ]
    if tree is None or statement is None or not given:
        return None
    text = ast.unparse(given[0])
    bound: ast.expr | None = None
    read: ast.expr | None = None
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Assign)) or not was_visited(
            filename, node.lineno
        ):
            continue
        if isinstance(node, ast.Assign):
            if any(ast.unparse(target) == text for target in node.targets):
                bound = node.value
        elif isinstance(node.ctx, ast.Load) and ast.unparse(node) == text:
            if not statement.lineno <= node.lineno <= (statement.end_lineno or 0):
                read = node
    if bound is None or read is None:
        return None
    return place_of_expression(key, bound), place_of_expression(key, read)


def _references(tree: ast.Module, name: str) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if (
            (isinstance(node, ast.Attribute) and node.attr == name)
            or (isinstance(node, ast.Name) and node.id == name)
            or (isinstance(node, ast.Constant) and node.value == name)
        ):
            yield node


def place_of_expression(key: FrameKey, node: ast.expr | ast.stmt) -> SourceRange:
    """The place of an expression or a statement in the file of a frame."""
    base = place_of(key)
    return SourceRange(
        base.filename,
        node.lineno,
        node.col_offset + 1,
        node.end_lineno or node.lineno,
        (node.end_col_offset or node.col_offset) + 1,
        key.code.co_name,
        base.cell,
    )
