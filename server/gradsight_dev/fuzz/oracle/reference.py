"""The gradient a program would have if nobody had touched what autograd saved.

Every saved tensor is cloned when it is saved, and the clone is handed to backward.  A gradient that differs from the plain
run was computed from changed values; a saved value that changed without changing any gradient is told apart.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch

from gradsight_dev.fuzz.oracle.execution import Ended, gradient_of, tensors_of

Packed = tuple[torch.Tensor, torch.Tensor]


class ClonedSaves:
    """A context in which backward sees saved tensors as they were when they were saved."""

    def __init__(self) -> None:
        self.changed: set[int] = set()
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def __enter__(self) -> ClonedSaves:
        self._hooks.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hooks.__exit__(kind, error, trace)

    def _pack(self, tensor: torch.Tensor) -> Packed:
        now = tensor.detach()
        return now, now.clone()

    def _unpack(self, packed: Packed) -> torch.Tensor:
        now, then = packed
        if not same_values(now, then):
            self.changed.add(now.untyped_storage()._cdata)
        return then


def running_statistics(ended: Ended) -> set[int]:
    """The storages of batch-norm statistics: they are saved, each forward pass moves them, and backward ignores them."""
    return {
        tensor.untyped_storage()._cdata
        for label, tensor in tensors_of(ended.names)
        if label.endswith((".running_mean", ".running_var"))
    }


def differs(plain: Ended, cloned: Ended) -> str:
    """The label of the first gradient or value that differs between the two runs, or nothing."""
    ours = dict(tensors_of(plain.names))
    theirs = dict(tensors_of(cloned.names))
    for label in ours.keys() & theirs.keys():
        if not _same(gradient_of(ours[label]), gradient_of(theirs[label])):
            return f"{label}.grad"
        if not same_values(ours[label], theirs[label]):
            return label
    return ""


def same_values(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal in shape and value; not-a-number equals itself, and rounding is forgiven."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    with torch.no_grad():
        if torch.equal(one, other):
            return True
        return bool(
            one.is_floating_point() and torch.allclose(one, other, rtol=1e-4, atol=1e-6, equal_nan=True)
        )


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return same_values(one, other)
