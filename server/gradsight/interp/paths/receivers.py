"""The object that a method is executed on by itself: as its `__init__` makes it, without what other methods do to it."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.paths.roles import deeds_of, role_of
from gradsight.interp.syntax import remembered
from gradsight.model.values import ClassValue, Function, Instance, Mapping, Seq, Unknown


def unknown_roles(init: Function, cls: ClassValue) -> dict[str, Any]:
    """Arguments of an `__init__` that default to None and that the class applies, or treats as a module or an optimizer."""
    scopes: list[ast.AST] = [
        one.node for one in cls.lineage() if isinstance(one, ClassValue) and one.node is not None
    ]
    signature = init.node.args
    named = [*signature.posonlyargs, *signature.args][-len(init.defaults) :] if init.defaults else []
    return {
        parameter.arg: Unknown(f"argument {parameter.arg}")
        for parameter, default in zip(named, init.defaults)
        if default is None and is_used(f"self.{parameter.arg}", scopes)
    }


def is_used(key: str, scopes: list[ast.AST]) -> bool:
    return bool(role_of(key, scopes)) or any(key in deeds_of(scope).called for scope in scopes)


def forget_state(instance: Instance, depth: int = 0) -> None:
    """What other methods than `__init__` assign is not known when a method runs by itself."""
    assigned = assigned_outside_init(instance.cls)
    for name, value in list(instance.attributes.items()):
        if name in assigned and not (instance.module is not None and name in instance.module.registered):
            instance.attributes[name] = Unknown(f"attribute {name}, which other methods assign")
        elif isinstance(value, Instance) and depth < 2:
            forget_state(value, depth + 1)
        else:
            forget_length(value)


def assigned_outside_init(cls: ClassValue) -> set[str]:
    """Names of attributes that methods of the class other than `__init__` assign."""
    found: set[str] = set()
    for ancestor in cls.lineage():
        methods = ancestor.namespace.values() if isinstance(ancestor, ClassValue) else []
        for method in methods:
            if (
                isinstance(method, Function)
                and method.name != "__init__"
                and not isinstance(method.node, ast.Lambda)
            ):
                for piece in method.pieces():
                    found |= remembered(piece.node, "attributes_set", _attributes_set)
    return found


def _attributes_set(function: ast.AST) -> frozenset[str]:
    return frozenset(
        inner.attr
        for inner in ast.walk(function)
        if isinstance(inner, ast.Attribute)
        and isinstance(inner.ctx, ast.Store)
        and isinstance(inner.value, ast.Name)
    )


def forget_length(value: Any, depth: int = 0) -> None:
    """A container of an object whose other methods may have filled it since."""
    if isinstance(value, (Seq, Mapping)) and depth < 3:
        value.exact = value.exact and value.kind == "tuple"
        items = value.items if isinstance(value, Seq) else [*value.items.values(), *value.rest]
        for item in items:
            forget_length(item, depth + 1)
