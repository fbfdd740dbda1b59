"""Sizes: those that must be known, those that two operands share, and those that an index leaves."""

from __future__ import annotations

from gradsight.model.tensors import Shape, Tensor
from gradsight.model.values import Seq, Slice, Value

Sizes = tuple[int | None, ...]


def broadcast(shapes: list[Shape]) -> Shape:
    """The shape of an element-wise result."""
    result: list[int | None] = []
    if None in shapes:
        return None
    for shape in map(sizes, shapes):
        for index in range(1, len(shape) + 1):
            size = shape[-index]
            if index > len(result):
                result.insert(0, size)
            elif result[-index] == 1 or (result[-index] is None and size not in (1, None)):
                result[-index] = size
    return tuple(result)


def sizes(shape: Shape) -> Sizes:
    """The sizes of a shape that must be known: a rule that needs them says nothing where they are not."""
    if shape is None:
        raise TypeError
    return shape


def whole(value: Value) -> int:
    """A number that must be known."""
    if not isinstance(value, int):
        raise TypeError
    return value


def shape_of(value: Value) -> Shape:
    """The shape of a value that must be a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError
    return value.shape


def index_shape(shape: Shape, index: Value) -> Shape:
    """The shape of `tensor[index]` for basic and simple advanced indices."""
    parts = index.items if isinstance(index, Seq) and index.kind == "tuple" else [index]
    result: list[int | None] = []
    advanced: list[Shape] = []
    position: int | None = None
    rest = list(shape) if shape is not None else None
    consumed = sum(dimensions_taken(part) for part in parts)
    mixed = any(isinstance(part, (Tensor, Seq, range)) for part in parts)
    """Beside an advanced index a number is an advanced index as well."""
    for part in parts:
        if part is None:
            result.append(1)
            continue
        if rest is None:
            return None
        if part is Ellipsis:
            skip = len(rest) - (consumed - 0)
            taken = max(0, skip)
            result.extend(rest[:taken])
            rest = rest[taken:]
            continue
        if not rest:
            return None
        taken = dimensions_taken(part)
        size = rest[0]
        rest = rest[taken:]
        consumed -= taken
        if isinstance(part, Slice):
            result.append(_slice_size(size, part))
        elif isinstance(part, int) and not mixed:
            continue
        else:
            spread = () if isinstance(part, int) else picked(part)
            if spread is None:
                return None
            if position is None:
                position = len(result)
            elif len(result) != position:
                # Indices with a slice between them: their dimensions come first.
                position = 0
            advanced.append(spread)
    if rest is None:
        return None
    if advanced:
        spread = broadcast(advanced)
        if spread is None:
            return None
        result[position:position] = list(spread)
    return tuple(result + rest)


def dimensions_taken(part: Value) -> int:
    """How many dimensions an entry of an index stands for; a mask stands for its own."""
    if part is None or part is Ellipsis:
        return 0
    return len(part.shape) if isinstance(part, Tensor) and part.dtype == "bool" and part.shape else 1


def picked(part: Value) -> Shape:
    """The dimensions that an advanced index brings."""
    if isinstance(part, Tensor):
        if part.dtype == "bool":
            return (None,) if part.shape else None
        return part.shape
    if isinstance(part, range):
        return (len(part),)
    return (len(part.items),) if isinstance(part, Seq) and part.exact else None


def _slice_size(size: int | None, part: Slice) -> int | None:
    if part.start is None and part.stop is None and part.step is None:
        return size
    if not isinstance(size, int):
        return None
    if all(value is None or isinstance(value, int) for value in (part.start, part.stop, part.step)):
        # A size that options of a layer do not allow may come out below nothing.
        return len(range(*slice(part.start, part.stop, part.step).indices(max(size, 0))))
    return None
