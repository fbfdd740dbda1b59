"""Which dimension of dense memory each dimension of a view walks along, and what can be merged without a copy.

    x = torch.randn(2, 4, 8)                MemoryOrder((0, 1, 2))
    x.transpose(1, 2)                       MemoryOrder((0, 2, 1)): the first two dimensions do not follow each other in memory
    x[:, 1:]                                MemoryOrder((0, 1, 2), {1}): there are gaps between the rows of the first dimension

A product with a matrix takes all dimensions but the last for one, a product of batches all but the last two.  What cannot be
merged is copied, and the copy is saved: a write to the operand leaves backward alone.  Sizes that are not known are taken
for larger than 1; a batch of one is always merged.
"""

from __future__ import annotations

from itertools import pairwise

from gradsight.model.tensors import MemoryOrder, Shape, Tensor
from gradsight.model.values import Seq, Slice, Value
from gradsight.ops.traits import having

SWAPS = {"transpose", "swapaxes", "swapdims"}
SWAPS_LAST = {"adjoint", "mT", "mH"}
DROPS = {"select", "unbind"}
NARROWS = having("leads") - {"index"} - DROPS
SAME = {"alias", "detach", "data"}
SAME_IF_ALIKE = {"reshape", "reshape_as"}
"""Operators that copy nothing where the result has the shape of the tensor, however that lies in memory."""


def layout_of(tensor: Tensor) -> MemoryOrder | None:
    """How a tensor lies in its memory; None if that is not known."""
    if not tensor.dense:
        return tensor.layout
    return (
        MemoryOrder((), is_open=True)
        if tensor.shape is None
        else MemoryOrder(tuple(range(len(tensor.shape))))
    )


def is_in_order(layout: MemoryOrder | None) -> bool:
    """Whether all dimensions follow each other as in dense memory, as after exchanging two of them twice."""
    if layout is None or layout.is_open or layout.narrowed:
        return False
    return layout.order == tuple(range(len(layout.order)))


def compact(layout: MemoryOrder) -> MemoryOrder:
    """How memory is laid out anew in the order of another one: what that does not show has no place in it."""
    places = sorted(layout.order)
    return MemoryOrder(tuple(places.index(place) for place in layout.order), is_open=layout.is_open)


def values_in(value: Value) -> list[Value]:
    """The members of dimensions that are given one by one or as one sequence."""
    if isinstance(value, Seq):
        return [member for item in value.items for member in values_in(item)]
    return [value]


def may_show(source: Tensor, shape: Shape) -> bool:
    """Whether a tensor that is not dense may be given a shape without a copy: by parting dimensions, or merging neighbours."""
    layout = source.layout
    if layout is None or layout.is_open or shape is None or len(shape) >= len(layout.order):
        return True
    return any(after == before + 1 for before, after in pairwise(layout.order))


def of_view(op: str, bound: dict[str, Value], source: Tensor) -> MemoryOrder | None:
    """How the view that an operator makes of a tensor lies in memory."""
    layout = layout_of(source)
    if layout is None or op in SAME:
        return layout
    if op in SAME_IF_ALIKE and not source.dense:
        # Else it is a copy.
        return layout
    if op == "permute":
        return permuted(layout, values_in(bound.get("dims")))
    if op in SWAPS:
        dims = [value for name, value in bound.items() if name not in ("self", "input")]
        return swapped(layout, dims)
    if op in SWAPS_LAST:
        return swapped(layout, [-2, -1])
    if op in DROPS or op in NARROWS:
        place = place_of(layout, bound.get("dim", 0))
        if place is None:
            return None
        return dropped(layout, place) if op in DROPS else narrowed(layout, place)
    return None


def of_index(parts: list[Value], source: Tensor) -> MemoryOrder | None:
    """How the part of a tensor that a basic index takes lies in memory."""
    layout = layout_of(source)
    if layout is None or layout.is_open or sum(part is Ellipsis for part in parts) > 1:
        return None
    missing = len(layout.order) - sum(part is not Ellipsis for part in parts)
    whole: list[Value] = [Slice(None, None, None)] * missing
    at = next((place for place, part in enumerate(parts) if part is Ellipsis), None)
    parts = [*parts, *whole] if at is None else [*parts[:at], *whole, *parts[at + 1 :]]
    if missing < 0 or not all(isinstance(part, Slice) or is_number(part) for part in parts):
        return None
    for place in reversed(range(len(parts))):
        if layout is None:
            break
        part = parts[place]
        if not isinstance(part, Slice):
            layout = dropped(layout, place)
        elif part.step not in (None, 1):
            return None
        elif part.start is not None or part.stop is not None:
            layout = narrowed(layout, place)
    return layout


def of_result(operands: list[Tensor]) -> MemoryOrder | None:
    """How the result of an operator lies that works element by element: as its operands do, if they lie alike."""
    largest = max((len(one.shape) for one in operands if one.shape is not None), default=0)
    shown = [one for one in operands if one.shape is None or len(one.shape) == largest]
    layouts = [layout_of(one) for one in shown]
    first = layouts[0] if layouts else None
    if first is None or first.narrowed or any(layout != first for layout in layouts):
        return None
    return first if sorted(first.order) == list(range(len(first.order))) else None


def permuted(layout: MemoryOrder, dims: list[Value]) -> MemoryOrder | None:
    order = layout.order
    if layout.is_open and len(dims) >= len(order):
        order = (*order, *range(len(order), len(dims)))
    if len(order) != len(dims):
        return None
    places = [dim + len(order) if dim < 0 else dim for dim in dims if is_number(dim) and isinstance(dim, int)]
    if sorted(places) != list(range(len(order))):
        return None
    return MemoryOrder(tuple(order[place] for place in places), layout.narrowed)


def swapped(layout: MemoryOrder, dims: list[Value]) -> MemoryOrder | None:
    places = [place_of(layout, dim) for dim in dims]
    if len(places) != 2:
        return None
    one, other = places
    if one is None or other is None:
        return None
    order = list(layout.order)
    order += range(len(order), max(one, other) + 1)
    order[one], order[other] = order[other], order[one]
    return MemoryOrder(tuple(order), layout.narrowed, layout.is_open)


def place_of(layout: MemoryOrder, dim: Value) -> int | None:
    """A dimension counted from the first one; in an open layout none is counted from the last."""
    if not is_number(dim) or not isinstance(dim, int):
        return None
    if layout.is_open:
        return dim if dim >= 0 else None
    place = dim + len(layout.order) if dim < 0 else dim
    return place if 0 <= place < len(layout.order) else None


def dropped(layout: MemoryOrder, place: int) -> MemoryOrder | None:
    if layout.is_open:
        return None
    return MemoryOrder(layout.order[:place] + layout.order[place + 1 :], layout.narrowed)


def narrowed(layout: MemoryOrder, place: int) -> MemoryOrder | None:
    if layout.is_open:
        return None
    return MemoryOrder(layout.order, layout.narrowed | {layout.order[place]})


def is_number(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def can_merge(layout: MemoryOrder, shape: Shape, last: int) -> bool:
    """Whether all dimensions but the `last` ones can be taken for one; in an open layout, whether that is possible."""
    count = len(layout.order)
    if layout.is_open and shape is None:
        longer = [(*layout.order, *range(count, count + more)) for more in range(3)]
        return any(follow_each_other(order[: len(order) - last], layout, set()) for order in longer)
    ones = set()
    if shape is not None and len(shape) == count:
        ones = {layout.order[place] for place, size in enumerate(shape) if size == 1}
    leading = [place for place in layout.order[: max(0, count - last)] if place not in ones]
    return follow_each_other(tuple(leading), layout, ones)


def follow_each_other(leading: tuple[int, ...], layout: MemoryOrder, ones: set[int]) -> bool:
    return all(
        after > before and after not in layout.narrowed and all(between in ones for between in range(before + 1, after))
        for before, after in pairwise(leading)
    )  # fmt: skip
