"""What is in the union, the difference, the intersection of collections whose members are known one by one."""

from __future__ import annotations

from typing import Any

from gradsight.model.tensors import Tensor
from gradsight.model.unlisted import is_whole
from gradsight.model.values import Instance, Layer, Seq, is_constant

OPERATION = {
    "union": "or",
    "difference": "sub",
    "intersection": "and",
    "symmetric_difference": "xor",
}
"""Methods of sets, and the operators that do the same."""


def combined(operator: str, left: Seq, right: Any) -> Seq:
    """`left - right`, `left | right` …; what is not known of either is not known of the result."""
    both = isinstance(right, Seq) and is_whole(left) and is_whole(right)
    if not both or not all(is_comparable(item) for item in [*left.items, *right.items]):
        more = right.items if operator == "or" and isinstance(right, Seq) else []
        return Seq(left.kind, [*left.items, *more], False)
    here, there = members(left.items), members(right.items)
    kept = [one for key, one in here.items() if (key in there) is (operator == "and")]
    if operator in ("or", "xor"):
        kept = [
            *(here.values() if operator == "or" else kept),
            *(one for key, one in there.items() if key not in here),
        ]
    return Seq(left.kind, kept)


def distinct(kind: str, items: list[Any]) -> list[Any]:
    """The items of a new collection; of a set each once, as far as it is known which of them are equal."""
    is_known = kind == "set" and all(is_comparable(item) or is_constant(item) for item in items)
    return list(members(items).values()) if is_known else list(items)


def is_comparable(value: Any) -> bool:
    """Whether two such values are known to be equal or not; a stand-in for many parameters is none."""
    if isinstance(value, Tensor):
        return "<stand in>" not in (value.attributes or {})
    return isinstance(value, (str, int, float, Instance, Layer))


def members(items: list[Any]) -> dict[Any, Any]:
    """Each item once: numbers and texts by what they are, others by who they are."""
    return {one if is_constant(one) else id(one): one for one in items}
