"""Arithmetic on the settings of a program: what it gives is a setting again, and brings no graph."""

from __future__ import annotations

from typing import Any

from gradsight.model.values import Number, Unknown, Value, is_constant


def scales_number(factor: Any, number: Any) -> bool:
    """Whether something that is not known scales a number that was read from a tensor: `config.weight * loss.item()`."""
    return (
        isinstance(number, Number)
        and bool(number.cuts)
        and isinstance(factor, Unknown)
        and not (factor.plain or factor.carries or factor.argument)
        and factor.graph is None
        and factor.tensor is None
    )


def is_of_settings(value: Any) -> bool:
    """Whether a value is a constant, or one of the settings of a program: none of them brings a graph."""
    return is_constant(value) or (isinstance(value, Unknown) and value.is_setting and not value.hint)


def setting_like(name: str, left: Value, right: Value) -> Unknown:
    """What arithmetic on settings gives; with a constant it is the same whenever it is worked out."""
    if isinstance(left, Unknown) and is_constant(right):
        key = (name, right) if name in ("mod", "floordiv", "and") else (name, right, True)
        return left.derived(key, "arithmetic on settings")
    if isinstance(right, Unknown) and is_constant(left):
        return right.derived((name, left, False), "arithmetic on settings")
    unknown = Unknown("arithmetic on settings")
    unknown.is_setting = True
    return unknown
