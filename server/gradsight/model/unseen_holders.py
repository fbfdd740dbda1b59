"""Code that is not seen and may hold on to what it is given."""

from __future__ import annotations

from collections.abc import Iterable

from gradsight.model.values import External, Unknown, Value, tensors_in

WITHOUT_TENSORS = frozenset({"math", "cmath", "numpy", "np", "sys", "builtins", "torch", "string", "os"})
"""Libraries whose names, used in arithmetic, are numbers or nothing that requires grad."""

TRANSPARENT = frozenset(
    {"typing", "typing_extensions", "functools", "abc", "contextlib", "dataclasses", "enum", "torch"}
)
"""Libraries whose decorators hold on to nothing that the function is given."""


def holds_nothing(decorator: str) -> bool:
    return decorator.partition(".")[0] in TRANSPARENT


def may_be_held(values: Iterable[Value]) -> None:
    """A write to these is not called safe from now on: somebody who is not seen may have saved the value."""
    for value in values:
        for tensor in tensors_in(value):
            if tensor.counter.kept is None:
                tensor.counter.kept = tensor.counter.version


def may_require_grad(value: Value) -> bool:
    """Whether a value that is not known may be a tensor that requires grad."""
    if isinstance(value, External):
        return value.path.partition(".")[0] not in WITHOUT_TENSORS
    return isinstance(value, Unknown)
