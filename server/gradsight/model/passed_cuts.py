"""The cuts that the data in a value has passed on its way."""

from __future__ import annotations

from gradsight.model.tensors import NO_CUTS, Cut, Tensor
from gradsight.model.values import Array, Mapping, Number, Seq, Unknown, Value


def cuts_of(value: Value, depth: int = 0) -> frozenset[Cut]:
    """The cuts that data in this value has passed."""
    if isinstance(value, (Tensor, Unknown, Number, Array)):
        return value.cuts
    if depth < 3:
        if isinstance(value, Seq):
            return _union(value.items, depth)
        if isinstance(value, Mapping):
            return _union([*value.items.values(), *value.rest], depth)
    return NO_CUTS


def _union(values: list[Value], depth: int) -> frozenset[Cut]:
    found = NO_CUTS
    for value in values[:64]:
        cuts = cuts_of(value, depth + 1)
        if cuts:
            found = found | cuts
    return found
