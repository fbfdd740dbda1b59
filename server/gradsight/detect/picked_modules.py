"""Modules that may be meant where a dict of them is read under a key that is not known: `nets[args.name]`."""

from __future__ import annotations

from gradsight.detect.path import Path
from gradsight.model.tensors import Tensor
from gradsight.model.values import Instance, Layer


def picked_parameters(path: Path) -> set[Tensor]:
    """The parameters of all modules of such dicts: who holds those of another one may hold the right ones."""
    return {
        tensor
        for mapping in path.picked
        for value in mapping.items.values()
        if isinstance(value, (Instance, Layer)) and value.module is not None
        for _, tensor in path.tensors_of(value, "parameter")
    }
