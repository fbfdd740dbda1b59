"""Modules that may be meant where a dict of them is read under a key that is not known: `nets[args.name]`.

The machine goes on with the first of them.  Who holds the parameters of another one may hold the right ones.
"""

from __future__ import annotations

from gradsight.detect.path import Path
from gradsight.model.tensors import Tensor
from gradsight.model.values import (
    Bound,
    ClassValue,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    Partial,
    Seq,
    Value,
)

CALLED = (Bound, ClassValue, External, Function, Instance, Layer, Partial)


def picked_parameters(path: Path, held: set[Tensor]) -> set[Tensor]:
    """The parameters of such dicts of which one is held that is not the first."""
    found: set[Tensor] = set()
    for mapping in path.picked:
        modules = [
            {tensor for _, tensor in path.tensors_of(value, "parameter")}
            for value in mapping.items.values()
            if isinstance(value, (Instance, Layer)) and value.module is not None
        ]
        if any(held & others for others in modules[1:]):
            found.update(*modules)
    return found


def picks_functions(mappings: list[Mapping]) -> bool:
    """Whether what is called on the path was picked among several, of which each may save what another does not."""
    return any(sum(map(_is_called, mapping.items.values())) > 1 for mapping in mappings)


def _is_called(value: Value) -> bool:
    # `{"gelu_10": (ClippedGELU, {"max": 10})}`: a class, and what it is made with.
    return isinstance(value, CALLED) or (isinstance(value, Seq) and any(map(_is_called, value.items[:2])))
