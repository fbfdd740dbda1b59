"""What an operator's schema says about it: which arguments it writes, and which family it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

# Their schemas declare a write, and no value changes.
_NO_VALUE_CHANGES = frozenset(
    ("aten::detach_", "aten::requires_grad_", "aten::retain_grad", "aten::rename_", "aten::squeeze_",
     "aten::unsqueeze_", "aten::transpose_", "aten::t_", "aten::swapaxes_", "aten::swapdims_", "aten::as_strided_",
     "aten::set_", "aten::_resize_output_", "aten::resize_", "aten::resize_as_")
)  # fmt: skip
# The result says nothing about the values of the inputs.
_SHAPE_ONLY = frozenset(
    ("aten::zeros_like", "aten::ones_like", "aten::empty_like", "aten::full_like", "aten::rand_like",
     "aten::randn_like", "aten::randint_like", "aten::new_zeros", "aten::new_ones", "aten::new_empty",
     "aten::new_full", "aten::new_empty_strided")
)  # fmt: skip
_OVERWRITES = frozenset(
    ("aten::zero_", "aten::fill_", "aten::normal_", "aten::uniform_", "aten::random_", "aten::bernoulli_",
     "aten::exponential_", "aten::cauchy_", "aten::geometric_", "aten::log_normal_")
)  # fmt: skip
_ADDITIONS = frozenset(("aten::add", "aten::sub", "aten::rsub", "aten::add_", "aten::sub_"))
# Layers: every element of the result is a sum over many of the input.
_LAYERS = frozenset(
    ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mv", "aten::addmv", "aten::linear",
     "aten::convolution", "aten::embedding", "aten::_trilinear")
)  # fmt: skip


class Trait(NamedTuple):
    """The facts about one operator overload that the recorder asks for on every call."""

    name: str
    writes: tuple[tuple[int, str], ...]
    foreach: bool
    detaches: bool
    shape_only: bool
    overwrites: bool
    adds: bool
    mixes: bool
    views: bool


_KNOWN: dict[Any, Trait] = {}


def trait_of(func: Any) -> Trait:
    """The facts about an operator overload."""
    trait = _KNOWN.get(func)
    if trait is None:
        trait = _KNOWN[func] = _learn(func)
    return trait


def _learn(func: Any) -> Trait:
    schema = getattr(func, "_schema", None)
    if schema is None:
        return Trait(str(func), (), False, False, False, False, False, False, False)
    name = str(schema.name)
    writes: tuple[tuple[int, str], ...] = ()
    if name.startswith("c10d::") and name.endswith("_"):
        # Collectives write their tensors without saying so in the schema.
        writes = ((0, "tensors"),)
    elif name not in _NO_VALUE_CHANGES:
        writes = tuple(
            (index, str(argument.name))
            for index, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        )
    return Trait(
        name=name,
        writes=writes,
        foreach=name.startswith("aten::_foreach"),
        detaches=name == "aten::detach",
        shape_only=name in _SHAPE_ONLY,
        overwrites=name in _OVERWRITES,
        adds=name in _ADDITIONS,
        mixes=name in _LAYERS,
        views=not writes and any(result.alias_info is not None for result in schema.returns),
    )


def written_tensors(trait: Trait, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
    """The arguments of this call that the operator writes, lists flattened."""
    for index, name in trait.writes:
        value = args[index] if index < len(args) else kwargs.get(name)
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, torch.Tensor):
                    yield item
                elif isinstance(item, (list, tuple)):
                    yield from (part for part in item if isinstance(part, torch.Tensor))
