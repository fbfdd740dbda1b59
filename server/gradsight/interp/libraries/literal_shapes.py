"""The shape that a factory gives a tensor: of a row of numbers, and of nested literals."""

from __future__ import annotations

from gradsight.model.tensors import Shape, Tensor
from gradsight.model.values import Number, Seq, Value


def counted(args: list[Value]) -> Shape:
    """The shape of `torch.arange(*args)`."""
    bounds = [arg for arg in args if isinstance(arg, (int, float))]
    start, stop = (0, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
    step = bounds[2] if len(bounds) > 2 else 1
    return (max(0, -int(-(stop - start) // step)),) if step else (None,)


def literal_shape(data: Value, shapes: dict[int, tuple[Shape, str]] | None = None) -> tuple[Shape, str]:
    """Shape and dtype of `torch.tensor(data)` for numbers and nested sequences; `shapes` are those of parts, each found once."""
    if isinstance(data, bool):
        return (), "bool"
    if isinstance(data, int):
        return (), "int"
    if isinstance(data, (float, complex)):
        return (), "float" if isinstance(data, float) else "complex"
    if isinstance(data, Number):
        return (), "?" if not data.cuts else "float"
    if isinstance(data, Tensor):
        return data.shape, data.dtype
    if isinstance(data, range):
        return (len(data),), "int"
    if isinstance(data, Seq):
        length = len(data.items) if data.exact else None
        if not data.items:
            return (length,), "float"
        known = {} if shapes is None else shapes
        for item in data.items[:64]:
            known[id(item)] = known.get(id(item)) or literal_shape(item, known)
        inner, dtype = known[id(data.items[0])]
        kinds = {known[id(item)][1] for item in data.items[:64]}
        if "float" in kinds:
            dtype = "float"
        elif "?" in kinds:
            dtype = "?"
        return ((length, *inner) if inner is not None else None), dtype
    return None, "?"
