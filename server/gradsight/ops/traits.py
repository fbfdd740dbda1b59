"""Traits of operators, factories, optimizers and layers, measured on torch: the reader of `traits.txt`.

A line that begins with `+` is a layer of `torch.nn`:

    +nn.Linear<TAB>in_features, out_features, bias=True, device, dtype<TAB>weight out_features,in_features; bias out_features if bias

its constructor's options, with those defaults that the layer shows as attributes, and its own tensors in torch's order with
their sizes and the options without which they are not there.  A buffer's name begins with `~`, `?` says that sizes do not follow
from options, `weight_ih_l{num_layers}` is one tensor for each number below that option, and `...` stands for tensors whose names
no option tells.  Every other line is a trait and the names that have it.
"""

from __future__ import annotations

import os
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TRAITS = os.path.join(os.path.dirname(__file__), "traits.txt")
WRITTEN_BY = "python -m gradsight_dev.traits"


class LayerTensor:
    """One tensor of a layer; `sizes` are options, or None; `needs` are options without which it is not there."""

    __slots__ = ("counted_by", "is_parameter", "name", "needs", "sizes")

    def __init__(self, text: str) -> None:
        told, _, needs = text.partition(" if ")
        name, _, sizes = told.partition(" ")
        self.is_parameter = not name.startswith("~")
        self.name = name.lstrip("~")
        self.counted_by = name.partition("{")[2].partition("}")[0]
        self.sizes = None if sizes == "?" else tuple(sizes.split(",") if sizes else ())
        self.needs = tuple(needs.split())

    def numbered(self, number: int) -> str:
        """The name of the tensor with this number, of those that stand behind this one."""
        return self.name.replace(f"{{{self.counted_by}}}", str(number)) if self.counted_by else self.name


class LayerFact:
    """What a layer is made with and holds."""

    __slots__ = ("defaults", "options", "tensors", "varies")

    def __init__(self, options: str, tensors: str) -> None:
        from ast import literal_eval

        parts = [part.partition("=") for part in options.split(", ")] if options else []
        self.options = tuple(name for name, _, _ in parts)
        self.defaults: Mapping[str, Any] = {name: literal_eval(text) for name, _, text in parts if text}
        self.varies = tensors == "..."
        self.tensors = (
            tuple(LayerTensor(text) for text in tensors.split("; ")) if tensors and not self.varies else ()
        )


@cache
def _lines() -> dict[str, str]:
    with open(TRAITS, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return {head: body for head, _, body in (line.partition("\t") for line in lines[1:])}


@cache
def having(trait: str) -> frozenset[str]:
    """The bare names of the operators, factories or optimizers that have a trait."""
    return frozenset(_lines()[trait].split())


@cache
def layer_fact(name: str) -> LayerFact | None:
    """What is known about a layer by its name in the table (`nn.Linear`)."""
    line = _lines().get(f"+{name}")
    if line is None:
        return None
    options, _, tensors = line.partition("\t")
    return LayerFact(options, tensors)


def layer_names() -> list[str]:
    """All layers with a fact."""
    return [head[1:] for head in _lines() if head.startswith("+")]
