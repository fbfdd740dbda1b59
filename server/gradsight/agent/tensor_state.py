"""The state of one tensor in a running program: who made it, who saved it, how often it was written."""

from __future__ import annotations

import gc
from typing import Any, Optional

import torch

from gradsight.agent.graph import base_name, saved_tensors, storage_key, untracked, walk
from gradsight.agent.oplog import OpLog, operator_label
from gradsight.agent.sites import SourceRange, Stack, place_of

Placed = tuple[str, Optional[SourceRange]]
_MOST_WRITES = 5
_MOST_KEEPERS = 8


def state_of(value: Any, log: OpLog) -> list[Placed]:
    """Sentences about a tensor, each with the place it speaks of."""
    if not isinstance(value, torch.Tensor):
        return [(f"has the type {type(value).__name__}, which is not a tensor", None)]
    with untracked():
        return [
            (_shape(value), None),
            *_maker(value, log),
            *_keepers(value, log),
            *_gradient(value),
            *_writes(value, log),
        ]


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


def _keepers(tensor: torch.Tensor, log: OpLog) -> list[Placed]:
    """The operators in the graphs of all living tensors that keep this memory for backward."""
    memory = storage_key(tensor) if tensor.layout is torch.strided else 0
    if not memory:
        return []
    living = [each for each in gc.get_objects() if type(each) is torch.Tensor and each.grad_fn is not None]
    shown: list[Placed] = []
    for node in walk(living):
        if any(storage_key(saved.data) == memory for saved in saved_tensors(node)):
            made = log.maker(node)
            name = operator_label(made.name) if made is not None else base_name(node.name())
            shown.append((f"saved by `{name}`", _place(made.stack) if made is not None else None))
            if len(shown) == _MOST_KEEPERS:
                break
    return shown[::-1]


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
