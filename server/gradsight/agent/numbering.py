"""Sequence numbers of graph nodes: torch hands them out from 2.1 on; before that the agent does, call by call.

A number is kept in the metadata of its node, which lives as long as the node does.  Below one call of the API nodes are
numbered from the leaves up, so that numbers rise in the order in which torch makes nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_KEY = "gradsight-number"
_get: Callable[[], int] | None = getattr(torch._C._autograd, "_get_sequence_nr", None)
IS_NATIVE = _get is not None
_next = 1


def _own_next_number() -> int:
    return _next


next_number: Callable[[], int] = _get if _get is not None else _own_next_number
"""The number that the next node gets."""


def number_of(node: Any) -> int:
    """The sequence number of a graph node; -1 when it has none."""
    if node is None:
        return -1
    if IS_NATIVE:
        return int(node._sequence_nr()) if hasattr(node, "_sequence_nr") else -1
    try:
        return int(node.metadata.get(_KEY, -1))
    except AttributeError:
        return -1


def give_numbers(*values: Any) -> bool:
    """Numbers the nodes that a call has made, found through the tensors it returned or changed; whether there were any."""
    global _next
    before = _next
    for value in values:
        for tensor in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(tensor, torch.Tensor):
                for node in _unnumbered(_node_of(tensor)):
                    node.metadata[_KEY] = _next
                    _next += 1
    return _next != before


def _node_of(tensor: torch.Tensor) -> Any:
    """The node of a tensor; that of a view is left to the next call that computes with it.

    The node of a view is made when it is asked for, under a lock, and below two modes torch 2.0 waits for itself there.
    """
    return None if tensor._is_view() else tensor.grad_fn


def _unnumbered(node: Any) -> list[Any]:
    """The nodes under this one, itself included, that have no number yet; the deepest come first."""
    order: list[Any] = []
    seen: set[Any] = set()
    open_nodes = [node]
    while open_nodes:
        current = open_nodes.pop()
        if current is None or current in seen or not hasattr(current, "metadata") or _KEY in current.metadata:
            continue
        seen.add(current)
        order.append(current)
        open_nodes.extend(successor for successor, _ in current.next_functions)
    return order[::-1]


def node_of(tensor: torch.Tensor) -> Any:
    """`tensor.grad_fn`; None where torch refuses to tell: one of several views whose base was written since."""
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def is_trainable_leaf(tensor: torch.Tensor) -> bool:
    """Whether backward leaves a gradient in the tensor; a view that torch refuses to tell about is none."""
    try:
        return bool(tensor.requires_grad and tensor.is_leaf)
    except RuntimeError:
        return False
