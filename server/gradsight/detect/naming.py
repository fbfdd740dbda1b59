"""What the places that a program names hold."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.path import Path
from gradsight.model.values import Instance, Mapping


def value_of_target(path: Path, target: ast.expr) -> Any:
    """What a name, an attribute of a named object or an item of a named dict holds."""
    if isinstance(target, ast.Name):
        scope = path.frame.scope
        while scope is not None and target.id not in scope.names:
            scope = scope.outer
        return scope.names[target.id] if scope is not None else None
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        owner = path.frame.namespace.get(target.value.id)
        return owner.attributes.get(target.attr) if isinstance(owner, Instance) else None
    if isinstance(target, ast.Subscript):
        held = value_of_target(path, target.value)
        key = (
            target.slice.value
            if isinstance(target.slice, ast.Constant)
            else value_of_target(path, target.slice)
        )
        return path.mapping_item(held, key) if isinstance(held, Mapping) else None
    return None
