"""Which part of a memory a view shows, as far as its index tells, and whether two parts meet.

Parts of a basic index are compared interval by interval, and parts that were made at once by their number.
"""

from __future__ import annotations

from typing import TypeGuard

from gradsight.interp.tensors.fact_selection import parts_of
from gradsight.model.tensors import Indexed, Interval, PartOf, Region, Shape
from gradsight.model.values import Seq, Slice, Value


def region_of(index: Value, shape: Shape = None) -> Region:
    """A comparable description of a fully known basic index: per dimension an interval, or None for all of it."""
    intervals: list[Interval | None] = []
    for position, part in enumerate(parts_of(index)):
        size = shape[position] if shape is not None and position < len(shape) else None
        if isinstance(size, int):
            part = counted(part, size)
        if isinstance(part, int) and not isinstance(part, bool):
            intervals.append(Interval(part, part + 1) if part >= 0 else Interval(part, None, from_end=True))
        elif isinstance(part, Slice) and part.step is None:
            start, stop = part.start, part.stop
            if start is None and stop is None:
                intervals.append(None)
            elif is_bound(start) and is_bound(stop):
                intervals.append(Interval(start or 0, stop))
            else:
                return None
        else:
            return None
    return Indexed(tuple(intervals))


def is_bound(value: Value) -> TypeGuard[int | None]:
    """A bound of a slice that is counted from the start, or left out."""
    return value is None or (isinstance(value, int) and value >= 0)


def index_meant(op: str, bound: dict[str, Value]) -> Value:
    """The index that says the same as `select` or `narrow`, where all of it is known."""
    names = {"select": ("dim", "index"), "narrow": ("dim", "start", "length")}.get(op, ())
    values = [value for name in names if type(value := bound.get(name)) is int and value >= 0]
    if not values or len(values) < len(names):
        return None
    dim, first, *rest = values
    part = Slice(first, first + rest[0], None) if rest else first
    return Seq("tuple", [*(Slice(None, None, None) for _ in range(dim)), part])


def counted(part: Value, size: int) -> Value:
    """An index entry with negative bounds counted from the start."""
    if isinstance(part, int) and not isinstance(part, bool) and part < 0:
        return part + size
    if isinstance(part, Slice) and part.step is None:
        bounds = (part.start, part.stop)
        if all(bound is None or isinstance(bound, int) for bound in bounds):
            start, stop, _ = slice(*bounds).indices(max(size, 0))
            return Slice(start or None, stop if stop != size else None, None)
    return part


def overlaps(written: Region, read: Region) -> bool:
    """Whether two regions of a storage may share elements; unknown regions do."""
    if written is None or read is None or written == read:
        return True
    if isinstance(written, Indexed) and isinstance(read, Indexed):
        return not any(apart(first, second) for first, second in zip(written.intervals, read.intervals))
    return not (isinstance(written, PartOf) and isinstance(read, PartOf))


def surely_overlap(written: Region, read: Region) -> bool:
    """Whether two known regions certainly share elements."""
    if isinstance(written, Indexed) and isinstance(read, Indexed):
        return written == read or all(
            meet(first, second) for first, second in zip(written.intervals, read.intervals)
        )
    return isinstance(written, PartOf) and written == read


def apart(first: Interval | None, second: Interval | None) -> bool:
    """Two intervals of one dimension without a common index."""
    if first is None or second is None or first == second:
        return False
    if first.from_end or second.from_end:
        return first.from_end and second.from_end
    return (first.stop is not None and first.stop <= second.start) or (
        second.stop is not None and second.stop <= first.start
    )


def meet(first: Interval | None, second: Interval | None) -> bool:
    """Two intervals of one dimension with a common index for certain."""
    if first is None or second is None or first == second:
        return True
    return not (first.from_end or second.from_end) and not apart(first, second)
