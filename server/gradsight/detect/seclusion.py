"""Whether a path starts from nothing: what holds on it holds whoever calls."""

from __future__ import annotations

from gradsight.detect.path import Path
from gradsight.model.library_objects import Optimizer
from gradsight.model.values import Instance, Layer, Mapping, Seq, Value, tensors_in

MOST_ITEMS = 64


def starts_from_nothing(path: Path) -> bool:
    """Whether all that is trained on a path was made on it: a script, or a function that makes its own modules.

    Methods start from an object, and functions may work on what the file holds; either may have been changed before.
    """
    if path.context == "script":
        return True
    if path.context != "function" or path.has_receiver or path.premises:
        return False
    return not any(has_state(value) for value in path.private.values())


def has_state(value: Value, depth: int = 0) -> bool:
    """Whether a value is, or holds, something that training changes."""
    if isinstance(value, (Instance, Layer, Optimizer)) or tensors_in(value):
        return True
    if depth < 3 and isinstance(value, (Seq, Mapping)):
        items = value.items if isinstance(value, Seq) else [*value.items.values(), *value.rest]
        return any(has_state(item, depth + 1) for item in items[:MOST_ITEMS])
    return False
