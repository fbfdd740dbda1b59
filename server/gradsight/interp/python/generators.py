"""Generator functions from inside and outside: what a `yield` gives away, and what it is given.

A statement is suspended at its `yield`s before it is executed; what was sent to each waits for the moment at which the
expression asks for it.  What stands before a `yield` in the same statement is evaluated after it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Generator
from types import GeneratorType
from typing import Any, Protocol

from gradsight.interp.path_state import PathState, RaisedError
from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.library_objects import RaisedObject
from gradsight.model.sites import Frame
from gradsight.model.values import Mapping, Seq, Stream, Unknown, Value, Wrapper

YIELDS = (ast.Yield, ast.YieldFrom)
CLOSING = "GeneratorExit"
NO_EXCEPTIONS = frozenset({CLOSING, "KeyboardInterrupt", "SystemExit"})
"""What `except Exception` does not take."""
CLOSERS = frozenset({"close", "aclose"})
RESUMING = frozenset({"__next__", "__anext__", "send", "asend"})


class Language(Protocol):
    """What is needed of the language that executes a generator."""

    path: PathState
    objects: Any
    sent: dict[ast.AST, Value]

    def evaluate(self, node: Any) -> Value: ...

    def block(self, body: list[ast.stmt]) -> Generator[Any, Any, Any]: ...

    def enter_wrappers(self, wrappers: tuple[Wrapper, ...]) -> Callable[[], None]: ...


class Returned:
    """A return statement was reached."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


def generator_run(
    language: Language, frame: Frame, body: list[ast.stmt], around: tuple[Wrapper, ...] = ()
) -> Generator[Value, Any, Value]:
    """The values a generator function yields; its frame, and the modes around it, run only while it is asked."""
    flow, given = language.block(body), None
    resume: Any = flow.send
    while True:
        leave = language.enter_wrappers(around) if around else None
        previous = language.path.enter(frame)
        try:
            item = resume(given)
        except StopIteration as stop:
            return stop.value.value if isinstance(stop.value, Returned) else None
        finally:
            language.path.frame = previous
            if leave is not None:
                leave()
        try:
            given, resume = (yield item), flow.send
        except RaisedError as thrown:
            given, resume = thrown, flow.throw


def contains_yield(node: ast.AST) -> bool:
    """Whether the function's own body yields."""
    return bool(remembered(node, "contains_yield", _contains_yield))


def _contains_yield(node: ast.AST) -> bool:
    if not any(isinstance(part, YIELDS) for part in syntax_parts(node)):
        return False
    body = getattr(node, "body", [])
    return bool(_own_yields(list(body) if isinstance(body, list) else [body]))


def yields_in(statement: ast.stmt) -> list[ast.Yield | ast.YieldFrom]:
    """The `yield`s of a simple statement, in the order of the text."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return []
    found: list[ast.Yield | ast.YieldFrom] = remembered(statement, "yields_in", lambda it: _own_yields([it]))
    return found


def _own_yields(todo: list[ast.AST]) -> list[ast.Yield | ast.YieldFrom]:
    found: list[ast.Yield | ast.YieldFrom] = []
    while todo:
        current = todo.pop(0)
        if isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        todo[:0] = ast.iter_child_nodes(current)
        if isinstance(current, YIELDS):
            # An inner one has given its value before the outer one gives away its own.
            found.insert(0 if found and found[-1] in syntax_parts(current) else len(found), current)
    return found


def suspended(language: Language, asked: list[ast.Yield | ast.YieldFrom]) -> Generator[Any, Any, None]:
    """Give away what the `yield`s of a statement give, and keep what they are given for the statement."""
    for node in asked:
        if isinstance(node, ast.YieldFrom):
            language.sent[node] = yield from delegated(language, node)
        else:
            given = language.evaluate(node.value) if node.value is not None else None
            language.sent[node] = yield given


def delegated(language: Language, node: ast.YieldFrom) -> Generator[Any, Any, Value]:
    """`yield from inner`: what is sent goes to `inner`, and what it returns is the value."""
    source = language.evaluate(node.value)
    items, _ = language.objects.iterate(source)
    sent: Value = None
    while True:
        try:
            item = items.send(sent) if sent is not None and isinstance(items, Generator) else next(items)
        except StopIteration as stop:
            is_known = isinstance(source, (Stream, Seq, Mapping, range, str))
            return value_of(stop) if is_known else Unknown("what an unknown generator returns")
        sent = yield item


def value_of(stop: StopIteration) -> Value:
    """What a generator that is over has returned."""
    result: Value = stop.value
    return result


def generator_method(stream: Stream, name: str, args: list[Value]) -> Value:
    """`send`, `throw` and `close` of a generator, and of an asynchronous one."""
    flow: Any = stream.iterator
    result: Value = None
    if not isinstance(flow, GeneratorType):
        return next(flow, Unknown("end of an iterator")) if name in RESUMING else None
    is_new = inspect.getgeneratorstate(flow) == inspect.GEN_CREATED
    try:
        if name in RESUMING:
            result = next(flow) if is_new or not args else flow.send(args[0])
        elif name in ("throw", "athrow"):
            result = flow.throw(RaisedError(args[0] if args else None))
        elif name in CLOSERS and not is_new:
            flow.throw(RaisedError(RaisedObject(CLOSING, None)))
    except StopIteration:
        return None if name in CLOSERS else Unknown("end of an iterator")
    except RaisedError:
        if name not in CLOSERS:
            raise
    return result
