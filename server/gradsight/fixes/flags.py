"""The argument `inplace` of functions and layers, by name or by its place."""

from __future__ import annotations

import ast

from gradsight.fixes.forms import FLAG_PLACES
from gradsight.fixes.names import FUNCTIONAL, last_name, meaning
from gradsight.fixes.tree import Tree


def flag_of(tree: Tree, call: ast.Call) -> ast.expr | None:
    """The flag of a call of a library, where it is plainly true."""
    package, _, last = meaning(tree, call.func).rpartition(".")
    if not last:
        return None
    given = _flag(call, last if package in (FUNCTIONAL, "torch.nn") else "")
    return given if isinstance(given, ast.Constant) and given.value is True else None


def may_be_flagged(call: ast.Call) -> bool:
    """Whether a call, as far as its names tell, is given a flag that may be true."""
    given = _flag(call, last_name(call.func))
    return given is not None and not (isinstance(given, ast.Constant) and given.value is False)


def _flag(call: ast.Call, name: str) -> ast.expr | None:
    for word in call.keywords:
        if word.arg == "inplace":
            return word.value
    place = FLAG_PLACES.get(name, len(call.args))
    if place >= len(call.args) or any(isinstance(one, ast.Starred) for one in call.args[: place + 1]):
        return None
    return call.args[place]
