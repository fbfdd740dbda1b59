"""torch's own layers: their constructor options and the tensors they hold."""

from __future__ import annotations

from gradsight.model.tensors import Shape
from gradsight.model.values import Unknown, Value
from gradsight.ops.traits import layer_fact

EMPTY_MODULE = "nn.Module"
"""What holds the modules and parameters that are set on it: `mid = nn.Module(); mid.block = Block()`."""
MOST_NUMBERED = 8
"""Of tensors that a layer has one of for each number, as many are made."""


def constructor_options(name: str, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
    """Constructor arguments by name, defaults filled in where the layer shows them or they decide what it holds."""
    fact = layer_fact(name)
    if fact is None:
        return dict(kwargs)
    return {**fact.defaults, **dict(zip(fact.options, args)), **kwargs}


def make_tensors(name: str, options: dict[str, Value]) -> dict[str, tuple[str, Shape]]:
    """Names of the layer's own tensors, whether parameter or buffer, and their shapes where known."""
    fact = layer_fact(name)
    if fact is None:
        return {}
    if fact.varies:
        options["unknown"] = True
        return {"weight": ("parameter", None)}

    def size(key: str) -> int | None:
        value = options.get(key)
        return value if isinstance(value, int) else None

    def wanted(key: str) -> bool:
        value = options.get(key, True)
        return value is not None and not (isinstance(value, int) and not value)

    held = [tensor for tensor in fact.tensors if all(map(wanted, tensor.needs))]
    found: dict[str, tuple[str, Shape]] = {}
    counts = [size(tensor.counted_by) or 1 for tensor in held if tensor.counted_by]
    for number in range(min(max(counts, default=1), MOST_NUMBERED)):
        for tensor in held:
            if number and not tensor.counted_by:
                continue
            shape = None if tensor.sizes is None else tuple(map(size, tensor.sizes))
            kind = "parameter" if tensor.is_parameter else "buffer"
            found[tensor.numbered(number)] = (kind, shape)
    return found


def has_parameters(name: str, options: dict[str, Value]) -> bool:
    """Whether such a layer learns."""
    return any(kind == "parameter" for kind, _ in make_tensors(name, dict(options)).values())


__all__ = ["EMPTY_MODULE", "Unknown", "constructor_options", "has_parameters", "make_tensors"]
