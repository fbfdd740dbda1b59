"""The state of one tensor in a running program: who made it, who saved it, how often it was written."""

from __future__ import annotations

from typing import Any, Optional

import torch

from gradsight.agent.graph import storage_key, untracked, walk
from gradsight.agent.oplog import OpLog, operator_label
from gradsight.agent.sites import SourceRange, Stack, place_of

Placed = tuple[str, Optional[SourceRange]]
_MOST_WRITES = 5


def state_of(value: Any, log: OpLog) -> list[Placed]:
    """Sentences about a tensor, each with the place it speaks of."""
    if not isinstance(value, torch.Tensor):
        return [(f"has the type {type(value).__name__}, and is no tensor", None)]
    with untracked():
        return [(_shape(value), None), *_maker(value, log), *_gradient(value), *_writes(value, log)]


def _shape(tensor: torch.Tensor) -> str:
    grad = "requires grad" if tensor.requires_grad else "does not require grad"
    leaf = "a leaf" if tensor.is_leaf else "not a leaf"
    version = f", version {tensor._version}" if not tensor.is_inference() else ", an inference tensor"
    view = ", a view" if tensor._is_view() else ""
    return f"{list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}, {grad}, {leaf}{view}{version}"


def _maker(tensor: torch.Tensor, log: OpLog) -> list[Placed]:
    node = tensor.grad_fn
    if node is None:
        return []
    made = log.maker(node)
    name = operator_label(made.name) if made is not None else type(node).__name__
    shown: list[Placed] = [(f"made by `{name}`", _place(made.stack) if made is not None else None)]
    if node.next_functions:
        nodes = [each for each in walk((tensor,)) if each.next_functions]
        shown.append((f"its graph has {len(nodes)} operator{'s' if len(nodes) != 1 else ''}", None))
    return shown


def _gradient(tensor: torch.Tensor) -> list[Placed]:
    if not tensor.is_leaf or not tensor.requires_grad:
        return []
    if tensor.grad is None:
        return [("`.grad` is None: no backward has reached it, or it was cleared", None)]
    return [(f"`.grad` has norm {float(tensor.grad.detach().double().norm()):.4g}", None)]


def _writes(tensor: torch.Tensor, log: OpLog) -> list[Placed]:
    if not storage_key(tensor):
        return []
    writes = [write for write in log.writes_to(tensor) or () if write.stack]
    return [
        (f"overwritten by `{operator_label(write.name)}`", _place(write.stack))
        for write in writes[-_MOST_WRITES:]
    ]


def _place(stack: Stack) -> SourceRange | None:
    return place_of(stack[0]) if stack else None
