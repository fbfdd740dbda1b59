"""What a write in place is known to make of the numbers it finds: the same, scaled, shifted, sunk, or another tensor's."""

from __future__ import annotations

from typing import Any

from gradsight.interp.tensors.shapes import numel
from gradsight.model.passed_cuts import cuts_of
from gradsight.model.tensors import Tensor
from gradsight.model.values import Array, Number, Unknown, Value, tensors_in

SHIFTS = {"add_", "sub_", "subtract_", "__iadd__", "__isub__"}
SCALES = {
    "mul_", "multiply_", "div_", "divide_", "true_divide_", "__imul__", "__itruediv__", "__idiv__", "pow_", "float_power_", "__ipow__",
}  # fmt: skip
POWERS = {"pow_", "float_power_", "__ipow__"}
FIRST = ("self", "input")


def change_of(op: str, bound: dict[str, Any], target: Tensor, others: list[Tensor]) -> str:
    """How the numbers that an operator leaves in `target` differ from those it found, as `Write.change` says it.

    `add_` of numbers that nothing learns through leaves the gradient of the old value exact:

        h = x * 2
        with torch.no_grad():
            h.add_(noise)
        h.pow(2).sum().backward()
    """
    given = [value for name, value in bound.items() if name not in (*FIRST, "out") and value is not None]
    if "out" in bound:
        # `torch.add(h, 1, out=h)` is `h.add_(1)`.
        op = f"{op}_" if bound.get("self", bound.get("input")) is target else ""
    if op in SHIFTS:
        if all(is_number(value) for value in given) and bound.get("other") == 0:
            return "none"
        return "shifted" if all(is_constant(value) for value in given) else ""
    if op in SCALES:
        factor = next((value for value in given if is_number(value)), None)
        if len(given) != 1 or factor is None:
            return ""
        return "none" if factor == 1 else "scaled" if op not in POWERS and factor > 0 else ""
    if op in LIMITS and all(is_number(value) for value in given):
        low, high = _bounds(bound)
        least, most = _range_of(target)
        return "none" if low <= least and most <= high else ""
    if op in FILLS and not others[1:]:
        return change_by_filling(bound.get("value"))
    if op in COPIES and len(others) == 1 and content_written(target, op, others) == target.storage.content:
        return "none"
    return ""


OF_ARRAYS = {
    "add": "add_", "subtract": "sub_", "multiply": "mul_", "divide": "div_", "true_divide": "div_",
    "add=": "add_", "sub=": "sub_", "mul=": "mul_", "div=": "div_", "truediv=": "div_", "pow=": "pow_", "power": "pow_",
    "clip": "clamp_", "copyto": "copy_", "item assignment": "copy_", "fill": "fill_",
}  # fmt: skip
"""What NumPy calls an operator, and what it is called where it writes a tensor."""
NAMED = {"clamp_": ("min", "max"), "fill_": ("value",)}


def change_of_array(op: str, array: Array, given: list[Value]) -> str:
    """How a write of NumPy changes the numbers of the tensor whose memory an array shares."""
    known, target = OF_ARRAYS.get(op, ""), array.tensor
    if target is None or not known or not given:
        return ""
    if known == "copy_":
        source = given[0].tensor if isinstance(given[0], Array) else None
        return change_of(known, {}, target, [source]) if source is not None else ""
    if known not in NAMED and (len(given) > 1 or not is_number(given[0])):
        return ""
    names = NAMED.get(known, ("other",))
    return change_of(known, dict(zip(names, given)), target, [])


def change_by_filling(value: Any) -> str:
    """Elements that are filled with one number: a softmax passes no gradient on to those that are far from all others.

        scores = q @ k
        with torch.no_grad():
            scores.masked_fill_(mask, -1e9)
        scores.softmax(-1).pow(2).sum().backward()  # exact

    A number that is not known (`torch.finfo(q.dtype).min`) may be such a one.
    """
    if is_number(value):
        return "sunk" if abs(value) >= SUNK else ""
    return "sunk" if isinstance(value, (Number, Unknown)) else ""


FILLS = {"fill_", "masked_fill_", "index_fill_"}
SUNK = 1e4
COPIES = {"copy_", "index_put_"}
LIMITS = {"clamp_", "clip_", "clamp_min_", "clamp_max_"}
NO_LIMIT = float("inf")
RANGES = {
    **dict.fromkeys(("sigmoid", "softmax"), (0.0, 1.0)),
    **dict.fromkeys(("tanh", "sin", "cos"), (-1.0, 1.0)),
    **dict.fromkeys(("exp", "exp2", "relu", "abs", "square", "sqrt", "softplus"), (0.0, NO_LIMIT)),
}
"""Operators whose results lie between two numbers."""


def _bounds(bound: dict[str, Any]) -> tuple[float, float]:
    low, high = bound.get("min"), bound.get("max")
    return (-NO_LIMIT if low is None else low, NO_LIMIT if high is None else high)


def _range_of(target: Tensor) -> tuple[float, float]:
    """Between which numbers all of a tensor lies, by the operator that made it and as long as nobody wrote to it."""
    maker: Tensor | None = target
    while maker is not None and maker.node is None:
        maker = maker.source
    if maker is None or maker.node is None or any(one.change != "none" for one in target.storage.writes):
        return (-NO_LIMIT, NO_LIMIT)
    return RANGES.get(maker.node.op, (-NO_LIMIT, NO_LIMIT))


def content_written(target: Tensor, op: str, others: list[Tensor]) -> tuple[int, int]:
    """The name of what the memory of `target` holds after a write: that of another memory if all of it was copied."""
    storage = target.storage
    if op in COPIES and len(others) == 1 and target.region is None and not target.twist:
        source = others[0]
        if source.region is None and is_copy_of_all(source, target):
            return source.storage.content
    return (storage.serial, storage.epoch + 1)


def is_copy_of_all(source: Tensor, target: Tensor) -> bool:
    """Whether two windows show all of their memories, in the same way and in the same numbers."""
    return (
        source.twist == target.twist
        and source.dtype == target.dtype
        and source.shape == target.shape is not None
        and shows_all(source)
        and shows_all(target)
    )


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_constant(value: Any) -> bool:
    """Whether nothing that requires grad had a part in a value, as far as it is known."""
    if isinstance(value, Tensor):
        return value.needs_grad() is False and not value.cuts
    if isinstance(value, (Number, Unknown)):
        return not cuts_of(value)
    return all(is_constant(tensor) for tensor in tensors_in(value))


def same_window(target: Tensor, other: Tensor) -> bool:
    """Two tensors that certainly show the same memory in the same way."""
    return target is other or (
        target.twist == other.twist and target.region is None and shows_all(target) and shows_all(other)
    )


def shows_all(tensor: Tensor) -> bool:
    """Whether it is a whole memory, or a view of all of it."""
    owner = tensor
    while owner.source is not None:
        if owner.overlapping or owner.twist:
            return False
        owner = owner.source
    return owner is tensor or (
        tensor.shape is not None and numel(tensor.shape) == numel(owner.shape) is not None
    )
