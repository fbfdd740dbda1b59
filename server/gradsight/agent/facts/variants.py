"""Further calls made from one that works: flags flipped, a number or nothing in place of a tensor, another layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from gradsight.agent.facts.observe import CallTemplate, positional_places
from gradsight.agent.facts.signatures import Signature

# Flags that say where or how memory is allocated, not what happens to it.
UNTELLING = frozenset(["requires_grad", "pin_memory", "non_blocking", "out", "use_gpu", "enable_grad"])
REDUCTIONS = ("mean", "sum", "none")
NUMBERS = {"p": (0.0,), "dropout_p": (0.0, 0.5), "label_smoothing": (0.1,), "alpha": (2.0,), "beta": (0.5,)}


def variants_of(call: CallTemplate, signature: Signature) -> Iterator[CallTemplate]:
    """Calls that differ from `call` in one argument, and those again in place where there is such an option."""
    for variant in (*reductions_of(call, signature), *_one_changed(call, signature)):
        yield variant
        if signature.defaults.get("inplace") == "False" and "inplace" not in variant.keywords:
            if len(variant.positional) <= signature.positional.index("inplace"):
                yield CallTemplate(variant.positional, {**variant.keywords, "inplace": True})


def reductions_of(call: CallTemplate, signature: Signature) -> Iterator[CallTemplate]:
    """The same call with every other `reduction`, where there is such an option."""
    if signature.defaults.get("reduction", "")[:1] in ("'", '"'):
        places = positional_places(signature, call)
        given = {**dict(zip(places, call.positional)), **call.keywords}
        for text in REDUCTIONS:
            if given.get("reduction") != text:
                yield _with(call, places, "reduction", text)


def _one_changed(call: CallTemplate, signature: Signature) -> Iterator[CallTemplate]:
    try:
        places = positional_places(signature, call)
    except TypeError:
        return
    given = {**dict(zip(places, call.positional)), **call.keywords}
    for name in [*signature.positional, *signature.keyword_only]:
        default = signature.defaults.get(name)
        if name in UNTELLING or default is None:
            continue
        value = given.get(name)
        if default in ("True", "False"):
            yield _with(call, places, name, not (value if name in given else default == "True"))
        for number in NUMBERS.get(name, ()):
            if default != "None":
                yield _with(call, places, name, number)
        if isinstance(value, Tensor) and default == "None":
            yield _with(call, places, name, None)
    if sum(isinstance(value, Tensor) for value in given.values()) < 2:
        return
    for place, value in given.items():
        if isinstance(value, Tensor) and value.is_floating_point() and "[" not in place and place != "self":
            yield _with(call, places, place, 2.0)


def with_other_layout(call: CallTemplate) -> CallTemplate:
    """The same numbers in tensors that are not contiguous."""
    return CallTemplate(
        tuple(_transposed_layout(each) for each in call.positional),
        {name: _transposed_layout(each) for name, each in call.keywords.items()},
    )


def _with(call: CallTemplate, places: list[str], name: str, value: Any) -> CallTemplate:
    if name in places:
        positional = tuple(value if place == name else each for place, each in zip(places, call.positional))
        return CallTemplate(positional, dict(call.keywords))
    return CallTemplate(call.positional, {**call.keywords, name: value})


def _transposed_layout(value: Any) -> Any:
    if isinstance(value, Tensor):
        if (
            value.layout is not torch.strided
            or value.dim() < 2
            or value.is_quantized
            or not value.is_contiguous()
        ):
            return value
        return value.detach().transpose(0, -1).contiguous().transpose(0, -1)
    if (
        isinstance(value, (list, tuple))
        and not hasattr(value, "_fields")
        and not isinstance(value, torch.Size)
    ):
        return type(value)(_transposed_layout(each) for each in value)
    return value
