"""Which simple rule tells a result's shape and dtype: hypotheses tested on one call."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gradsight.agent.facts.observe import CallTemplate


def shape_hypotheses(result: Tensor, arguments: dict[str, Tensor], bound: dict[str, Any]) -> frozenset[str]:
    """Every rule that would give this result's shape."""
    found = set()
    shape = tuple(result.shape)
    if shape == ():
        found.add("scalar")
    alone = {place: tensor for place, tensor in arguments.items() if "[" not in place and "." not in place}
    for place, tensor in alone.items():
        if tuple(tensor.shape) == shape:
            found.add("like:" + place)
    if len(alone) > 1:
        try:
            if tuple(torch.broadcast_shapes(*[tensor.shape for tensor in alone.values()])) == shape:
                found.add("broadcast")
        except RuntimeError:
            pass
    elif len(alone) == 1 and "like:" + next(iter(alone)) in found:
        found.add("broadcast")
    if (alone and "dim" in bound) or "keepdim" in bound:
        if _reduced(next(iter(alone.values())), bound) == shape:
            found.add("reduce")
    elif shape == ():
        found.add("reduce")
    return frozenset(found)


def _reduced(tensor: Tensor, bound: dict[str, Any]) -> tuple[int, ...]:
    dims = bound.get("dim")
    keep = bound.get("keepdim") is True
    rank = tensor.dim()
    if dims is None or dims == () or dims == []:
        reduced = set(range(rank))
    elif isinstance(dims, (list, tuple)):
        reduced = {dim % max(rank, 1) for dim in dims if isinstance(dim, int)}
    elif isinstance(dims, int):
        reduced = {dims % max(rank, 1)}
    else:
        return (-1,)
    shape: list[int] = []
    for index, size in enumerate(tensor.shape):
        if index not in reduced:
            shape.append(size)
        elif keep:
            shape.append(1)
    return tuple(shape)


def dtype_class(
    target: Any, call: CallTemplate, name: str, result: Tensor, arguments: dict[str, Tensor]
) -> tuple[str, str]:
    """(class, exact name): how the result's dtype follows from the arguments'."""
    if result.dtype is torch.bool:
        return "bool", "bool"
    inputs = [tensor.dtype for tensor in arguments.values()]
    floating = [dtype for dtype in inputs if dtype.is_floating_point or dtype.is_complex]
    exact = str(result.dtype).replace("torch.", "")
    if not inputs:
        return ("float" if result.is_floating_point() else "complex" if result.is_complex() else "int"), ""
    if not (result.is_floating_point() or result.is_complex()):
        return ("int", exact) if floating else ("same", "")
    if result.is_complex() and not any(dtype.is_complex for dtype in inputs):
        return "complex", ""
    wide = _retyped(target, call, name, torch.float64)
    if result.dtype not in inputs:
        return "float", exact if wide is result.dtype or wide is None else ""
    if result.dtype is torch.float32 and wide is torch.float32:
        return "float", exact
    integral = _retyped(target, call, name, torch.int64)
    if integral is not None and integral.is_floating_point:
        return "float", ""
    return "same", ""


def _retyped(target: Any, call: CallTemplate, name: str, dtype: torch.dtype) -> Any:
    """The result's dtype when the call's floating tensors are given as `dtype`, or None."""

    def convert(value: Any) -> Any:
        if isinstance(value, Tensor) and value.dtype is torch.float32:
            return value.detach().abs().mul(3).to(dtype) if dtype is torch.int64 else value.detach().to(dtype)
        if (
            isinstance(value, (list, tuple))
            and not hasattr(value, "_fields")
            and not isinstance(value, torch.Size)
        ):
            return type(value)(convert(each) for each in value)
        return value

    try:
        changed = CallTemplate(
            tuple(convert(each) for each in call.positional),
            {key: convert(each) for key, each in call.keywords.items()},
        )
        found = target.run(changed, frozenset()).results.get(name)
    except Exception:
        return None
    return None if found is None else found.dtype
