"""Modules that may be meant where a dict of them is read under a key that is not known: `nets[args.name]`.

The machine goes on with the first of them.  Who holds the parameters of another one may hold the right ones.
"""

from __future__ import annotations

from gradsight.detect.path import Path
from gradsight.model.tensors import Tensor
from gradsight.model.values import Instance, Layer


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
