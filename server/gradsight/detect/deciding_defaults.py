"""Whether a class is another one when it is made with other arguments: a question to the syntax trees.

    class Block(nn.Module):
        def __init__(self, width, gate=None): self.gate = gate or nn.Identity()

A method that is executed by itself has an object that was made with the defaults.  *Deciding*: a default that a condition or an
index asks for, that is called, or that is handed to code which may do so.  What was found out about such an object says nothing
of those that others make.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gradsight.interp.syntax import remembered, remembered_of
from gradsight.interp.syntax_parts import parts_of, sorted_parts, syntax_parts
from gradsight.model.values import ClassValue, Function, Instance

PLAIN = frozenset(
    "int float bool str len range max min abs round sum tuple list set sorted super isinstance print".split()
)
"""Functions of Python that make nothing else of an argument that is another one."""
LIBRARIES = frozenset(("nn", "torch", "math", "np", "numpy"))


def made_by_default(modules: Iterable[object]) -> bool:
    """Whether one of these objects stands for others, which other arguments may have made differently."""
    return any(
        isinstance(one, Instance)
        and one.site is None
        and bool(remembered_of(one.cls, "deciding defaults", deciding_defaults))
        for one in modules
    )


def deciding_defaults(cls: ClassValue) -> set[str]:
    """The parameters with a default that decide which parts an object has, or which way its methods go."""
    init, _ = cls.find("__init__")
    if not isinstance(init, Function) or init.unit.library:
        return set()
    node = init.defined().node
    if isinstance(node, ast.Lambda):
        return set()
    defaults = dict(_with_default(node))
    found = {name for name in _asked(node) if name in defaults}
    found |= {name for name in _handed_on(node) if not _is_number(defaults.get(name, node))}
    kept = dict(_kept(node, defaults.keys() - found))
    methods = [
        method.defined().node
        for one in cls.lineage()
        if isinstance(one, ClassValue)
        for method in one.namespace.values()
        if isinstance(method, Function)
    ]
    asked = {name for method in methods if kept for name in _asked(method)}
    return found | {kept[name] for name in asked & kept.keys()}


def asks_for_training(function: ast.AST | None, write: ast.AST) -> bool:
    """Whether a function asks in which mode it is, and writes outside the arm for it."""
    tests: list[ast.If | ast.IfExp] = (
        remembered(function, "asks for training", _asks_for_training) if function else []
    )
    return any(write not in syntax_parts(test) for test in tests)


def _asks_for_training(function: ast.AST) -> list[ast.If | ast.IfExp]:
    return [
        test
        for test in (*parts_of(function, ast.If), *parts_of(function, ast.IfExp))
        if isinstance(test, (ast.If, ast.IfExp))
        and any(part.attr == "training" for part in parts_of(test.test, ast.Attribute))
    ]


def _with_default(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.AST]]:
    signature = function.args
    positional = [*signature.posonlyargs, *signature.args]
    for parameter, default in zip(reversed(positional), reversed(signature.defaults)):
        yield parameter.arg, default
    for parameter, given in zip(signature.kwonlyargs, signature.kw_defaults):
        if given is not None:
            yield parameter.arg, given


def _is_number(default: ast.AST) -> bool:
    return isinstance(default, ast.Constant) and type(default.value) in (int, float)


def _asked(function: ast.AST) -> Iterator[str]:
    """The names, and the attributes of `self`, that a condition or an index reads, or that are called."""
    parts = sorted_parts(function)
    asking: list[ast.AST] = [
        one.test for kind in (ast.If, ast.IfExp, ast.While) for one in parts.get(kind, ())
    ]
    asking += parts.get(ast.BoolOp, ())
    asking += [one.subject for one in parts.get(ast.Match, ())]
    asking += [one.slice for one in parts.get(ast.Subscript, ())]
    asking += [one.func for one in parts.get(ast.Call, ())]
    for one in asking:
        yield from _names(one)


def _handed_on(function: ast.AST) -> Iterator[str]:
    """The names that are handed to code of the program or of a library that is not torch."""
    for call in parts_of(function, ast.Call):
        first = call.func
        while isinstance(first, (ast.Attribute, ast.Call)):
            first = first.value if isinstance(first, ast.Attribute) else first.func
        if isinstance(first, ast.Name) and (first.id in LIBRARIES or first.id in PLAIN):
            continue
        for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
            yield from _names(argument)


def _kept(function: ast.AST, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The attributes that hold a parameter, and the parameter."""
    wanted = frozenset(names)
    for statement in parts_of(function, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Attribute) and isinstance(statement.value, ast.Name):
                if statement.value.id in wanted:
                    yield target.attr, statement.value.id


def _names(expression: ast.AST) -> Iterator[str]:
    for part in syntax_parts(expression):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self":
            yield part.attr
