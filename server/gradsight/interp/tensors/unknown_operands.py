"""Operands that are not known: whether they may bring a graph, and whether that may have been made in view."""

from __future__ import annotations

from gradsight.model.values import Instance, Mapping, Seq, Unknown, Value


def brings_graph(value: Value) -> bool:
    """Whether an operand is an unknown that may carry a graph of tensors that are known."""
    if isinstance(value, Unknown):
        return value.carries
    return isinstance(value, Seq) and any(isinstance(item, Unknown) and item.carries for item in value.items)


def is_unseen(value: Value) -> bool:
    """Whether an operand is an unknown that may have been made in view; what was there before is not."""
    if isinstance(value, Unknown):
        return not (value.hint or value.is_setting or value.is_outside)
    if isinstance(value, Seq):
        return not (value.exact or value.alike) or any(map(is_unseen, value.items))
    return isinstance(value, (Instance, Mapping))
