"""The members of a module that a program picks by a name which is not known: `models.__dict__[args.arch]`, `getattr(nets, name)`.

Of a dict with an unknown key the first item is taken.  So those come first that such a pick is for: functions and classes that
make something from nothing but options, and those that are the module's own before those that it imports.
"""

from __future__ import annotations

import ast
from itertools import takewhile
from typing import Any

from gradsight.model.values import MISSING, ClassValue, Function, Mapping, Unknown, Value

MOST_MEMBERS = 80
RANK_OF_THE_REST = 4


def in_order(members: dict[str, Value], path: str) -> dict[Value, Value]:
    """The members of the module at `path`, those that can be meant by a pick first; whatever was bound when, as they are written."""
    ranked = sorted(members, key=lambda name: (rank(members[name], path), line_of(members[name], path)))
    return {name: members[name] for name in ranked}


def line_of(value: Value, path: str) -> int:
    """Where a member is defined, if it is the module's own."""
    if isinstance(value, (Function, ClassValue)) and value.unit is not None and value.unit.path == path:
        return getattr(value.node, "lineno", 0)
    return 0


def picked(members: dict[Any, Value], usual: str, path: str) -> Value:
    """The member that a pick by an unknown name gives: the usual one, or the first of those that programs pick by name."""
    first = next(iter(members.values()))
    unknown = Unknown("getattr with an unknown name")
    return members.get(usual, first if rank(first, path) < RANK_OF_THE_REST else unknown)


def likeliest(listed: Mapping, home: str) -> Value:
    """The item of a dict that an unknown key stands for, in the file at `home`: the first, as it is written.

    In a registry that modules fill while they are imported it is one from a file near by: which of them was imported first is up to
    what else was analysed.
    """
    items = list(listed.items.values())
    written = listed.site.node if listed.site is not None else None
    if isinstance(written, ast.Dict) and written.keys:
        return items[0]
    places = [
        one.unit.path for one in items if isinstance(one, (Function, ClassValue)) and one.unit is not None
    ]
    if len(places) < len(items):
        return items[0]
    near = sorted(zip(places, items), key=lambda each: (-len(commonpath_of(each[0], home)), each[0]))
    return near[0][1]


def commonpath_of(one: str, other: str) -> list[str]:
    """The folders that two paths have in common from their beginning."""
    pairs = zip(one.split("/")[:-1], other.split("/")[:-1])
    return [folder for folder, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]


def rank(value: Value, path: str) -> int:
    """How far a member is from what a program picks by name: a function that makes something, then a class, then the rest."""
    if isinstance(value, Function) and makes_something(value.node) and needs_nothing(value.node, 0):
        return 0 if value.unit.path == path else 2
    if isinstance(value, ClassValue) and value.kind == "module":
        maker, _ = value.find("__init__")
        if maker is MISSING or (isinstance(maker, Function) and needs_nothing(maker.node, 1)):
            return 1 if value.unit is not None and value.unit.path == path else 3
    return RANK_OF_THE_REST


def makes_something(function: ast.AST) -> bool:
    """Whether a function ends in giving back what it made."""
    body = getattr(function, "body", None)
    last = body[-1] if isinstance(body, list) else None
    return isinstance(last, ast.Return) and isinstance(last.value, (ast.Call, ast.Name))


def needs_nothing(function: ast.AST, bound: int) -> bool:
    """Whether a function can be called without arguments, beside those that are bound."""
    arguments = getattr(function, "args", None)
    if not isinstance(arguments, ast.arguments):
        return False
    given = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return given <= bound and all(default is not None for default in arguments.kw_defaults)
