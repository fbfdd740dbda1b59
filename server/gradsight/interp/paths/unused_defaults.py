"""Defaults that a file never uses: parts of a class that whoever makes it gives.

    class Stage(nn.Module):
        def __init__(self, width, block=Bottleneck): ...

    makers = {"dark": Stage, "cross": CrossStage}
    stage = makers[kind](width, block=blocks[kind])     # the only call that can make a `Stage`, and it gives a `block`

What a `Stage` is made with is not known then, and `Bottleneck` is a guess.  A question to the syntax trees.  *Giving*: a call, a
dict or a field of a class that names the parameter.  A default counts as used where something that gives the parameter may
mean the default's class, by a name or by a text that is spelt like it, and where the class is called by its own name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gradsight.interp.syntax_parts import parts_of
from gradsight.model.sites import Unit
from gradsight.model.values import ClassValue, Function, Unknown, Value


class Given(NamedTuple):
    """A value that something gives a parameter, and the function in which that stands."""

    value: ast.expr
    scope: ast.AST


class Giving:
    """What a file gives by name, and which of its names it calls, or hands on without calling them."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self.values: dict[str, list[Given]] = {}
        self.called: set[str] = set()
        self.mentioned: set[str] = set()
        self.derived_from: set[str] = set()
        self.unread = list(units)

    def read_units(self) -> None:
        """Read the file, once, and only for a class that it says something of."""
        while self.unread:
            for statement in self.unread.pop(0).tree:
                if isinstance(statement, ast.ClassDef):
                    self.derived_from |= {base.id for base in statement.bases if isinstance(base, ast.Name)}
                for scope in scopes_in(statement):
                    self.read(scope)

    def read(self, scope: ast.AST) -> None:
        called: set[ast.AST] = set()
        for call in parts_of(scope, ast.Call):
            called.add(call.func)
            if isinstance(call.func, ast.Name):
                self.called.add(call.func.id)
            for keyword in call.keywords:
                if keyword.arg:
                    self.values.setdefault(keyword.arg, []).append(Given(keyword.value, scope))
        for made in parts_of(scope, ast.Dict):
            for key, value in zip(made.keys, made.values):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    self.values.setdefault(key.value, []).append(Given(value, scope))
        for field in parts_of(scope, ast.AnnAssign):
            if isinstance(field.target, ast.Name) and field.value is not None:
                self.values.setdefault(field.target.id, []).append(Given(field.value, scope))
        self.mentioned |= {
            name.id
            for name in parts_of(scope, ast.Name)
            if isinstance(name.ctx, ast.Load) and name not in called
        }

    def instead_of_defaults(self, cls: ClassValue) -> frozenset[str]:
        """The parameters of a class whose defaults are classes that nothing in the file makes it with."""
        defaults = classes_by_default(cls)
        if defaults:
            self.read_units()
        if (
            not defaults
            or cls.name in self.called
            or cls.name in self.derived_from
            or cls.name not in self.mentioned
        ):
            # What calls it by its name, or derives from it, may well leave things out.
            return frozenset()
        return frozenset(name for name, default in defaults if self.is_always_other(name, default, cls))

    def unknown_parts(self, cls: ClassValue) -> dict[str, Value]:
        """Stand-ins for those parameters."""
        return {name: Unknown(f"argument {name}") for name in self.instead_of_defaults(cls)}

    def is_always_other(self, name: str, default: ast.expr, cls: ClassValue) -> bool:
        given = [one for one in self.values.get(name, ()) if not is_inside(one.scope, cls.node)]
        meant = spelt(default.attr if isinstance(default, ast.Attribute) else getattr(default, "id", ""))
        return bool(given) and all(meant not in words_of(one) for one in given)


def classes_by_default(cls: ClassValue) -> list[tuple[str, ast.expr]]:
    """The parameters of a class that are classes if nobody gives them."""
    init = cls.namespace.get("__init__")
    if not isinstance(init, Function) or isinstance(init.node, ast.Lambda) or init.wrappers:
        return []
    return [(name, default) for name, default in defaults_of(init.node) if is_class_name(default)]


def scopes_in(statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement of the top level; of a class, each of the statements in it."""
    if not isinstance(statement, ast.ClassDef):
        yield statement
        return
    for inner in statement.body:
        yield from scopes_in(inner)


def is_inside(scope: ast.AST, cls: ast.AST | None) -> bool:
    return isinstance(cls, ast.ClassDef) and any(scope is one for one in cls.body)


def defaults_of(init: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(init, (ast.FunctionDef, ast.AsyncFunctionDef)):
        signature = init.args
        positional = [*signature.posonlyargs, *signature.args]
        if signature.defaults:
            for parameter, default in zip(positional[-len(signature.defaults) :], signature.defaults):
                yield parameter.arg, default
        for parameter, given in zip(signature.kwonlyargs, signature.kw_defaults):
            if given is not None:
                yield parameter.arg, given


def is_class_name(default: ast.expr) -> bool:
    name = default.attr if isinstance(default, ast.Attribute) else getattr(default, "id", "")
    return name[:1].isupper() and not name.isupper()


def words_of(given: Given) -> set[str]:
    """Everything that a given value names or spells, also through a parameter's default and the assignments of its function."""
    meant: dict[str, list[ast.expr]] = {}
    for name, default in defaults_of(given.scope):
        meant.setdefault(name, []).append(default)
    for part in parts_of(given.scope, ast.Assign):
        for target in part.targets:
            for inner in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                if isinstance(inner, ast.Name):
                    meant.setdefault(inner.id, []).append(part.value)
    return words_in(given.value, meant)


def words_in(value: ast.expr, meant: dict[str, list[ast.expr]]) -> set[str]:
    found: set[str] = set()
    seen: set[str] = set()
    todo: list[ast.AST] = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, ast.Attribute):
            found.add(spelt(part.attr))
            continue
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            found.add(spelt(part.value))
        elif isinstance(part, ast.Name) and part.id not in seen:
            seen.add(part.id)
            found.add(spelt(part.id))
            todo += meant.get(part.id, ())
        todo += ast.iter_child_nodes(part)
    return found


def spelt(name: str) -> str:
    """`LeakyReLU` and `leaky_relu` are one word."""
    return name.replace("_", "").lower()
