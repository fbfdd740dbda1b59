"""Which part of a memory a view shows, as far as its index tells, and whether two parts meet.

A *region* is None (unknown, or all of it), `("index", intervals)` for a basic index, or `("part", n)` for one of several
views made at once.
"""

from __future__ import annotations

from typing import Any

from gradsight.interp.tensors.fact_selection import parts_of
from gradsight.model.values import Seq, Slice


def region_of(index: Any, shape: Any = None) -> Any:
    """A comparable description of a fully known basic index: per dimension an interval, or None for all of it."""
    parts: list[Any] = []
    for position, part in enumerate(parts_of(index)):
        size = (
            shape[position] if shape is not None and position < len(shape) and Ellipsis not in parts else None
        )
        if isinstance(size, int):
            part = counted(part, size)
        if isinstance(part, int) and not isinstance(part, bool):
            parts.append((part, part + 1) if part >= 0 else ("end", part))
        elif isinstance(part, Slice) and part.step is None:
            if part.start is None and part.stop is None:
                parts.append(None)
            elif all(
                bound is None or (isinstance(bound, int) and bound >= 0) for bound in (part.start, part.stop)
            ):
                parts.append((part.start or 0, part.stop))
            else:
                return None
        else:
            return None
    return ("index", tuple(parts))


def index_meant(op: str, bound: dict[str, Any]) -> Any:
    """The index that says the same as `select` or `narrow`, where all of it is known."""
    names = {"select": ("dim", "index"), "narrow": ("dim", "start", "length")}.get(op, ())
    values = [value for name in names if type(value := bound.get(name)) is int and value >= 0]
    if not values or len(values) < len(names):
        return None
    dim, first, *rest = values
    part = Slice(first, first + rest[0], None) if rest else first
    return Seq("tuple", [*(Slice(None, None, None) for _ in range(dim)), part])


def counted(part: Any, size: int) -> Any:
    """An index entry with negative bounds counted from the start."""
    if isinstance(part, int) and not isinstance(part, bool) and part < 0:
        return part + size
    if isinstance(part, Slice) and part.step is None:
        bounds = (part.start, part.stop)
        if all(bound is None or isinstance(bound, int) for bound in bounds):
            start, stop, _ = slice(*bounds).indices(max(size, 0))
            return Slice(start or None, stop if stop != size else None, None)
    return part


def overlaps(write_region: Any, read_region: Any) -> bool:
    """Whether two regions of a storage may share elements; unknown regions do."""
    if write_region is None or read_region is None or write_region == read_region:
        return True
    if write_region[0] != read_region[0]:
        return True
    if write_region[0] == "part":
        return bool(write_region[1] == read_region[1])
    return not any(apart(first, second) for first, second in zip(write_region[1], read_region[1]))


def surely_overlap(write_region: Any, read_region: Any) -> bool:
    """Whether two known regions certainly share elements."""
    if write_region is None or read_region is None or write_region[0] != read_region[0]:
        return False
    if write_region == read_region:
        return True
    return write_region[0] == "index" and all(
        meet(first, second) for first, second in zip(write_region[1], read_region[1])
    )


def apart(first: Any, second: Any) -> bool:
    """Two intervals of one dimension without a common index."""
    if first is None or second is None or first == second:
        return False
    if first[0] == "end" or second[0] == "end":
        return bool(first[0] == second[0])
    return (first[1] is not None and first[1] <= second[0]) or (
        second[1] is not None and second[1] <= first[0]
    )


def meet(first: Any, second: Any) -> bool:
    """Two intervals of one dimension with a common index for certain."""
    if first is None or second is None or first == second:
        return True
    if first[0] == "end" or second[0] == "end":
        return False
    return not apart(first, second)
