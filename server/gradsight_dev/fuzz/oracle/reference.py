"""The gradient a program would have if nobody had touched what autograd saved.

Every saved tensor is cloned when it is saved, and the clone is handed to backward.  A gradient that differs from the plain
run was computed from changed values; a saved value that changed without changing any gradient is told apart.
"""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradsight_dev.fuzz.oracle.execution import Ended, gradient_of, tensors_of

Packed = tuple[torch.Tensor, torch.Tensor, int]
"""The saved tensor, its value then, and how many writes there had been."""
INPLACE = re.compile(r"[a-z]\w*[a-z0-9]_|__i\w+__|__setitem__")


class ClonedSaves(TorchFunctionMode):
    """A context in which backward sees saved tensors as they were when they were saved.

    A write that happens to leave the values as they are (adding a gradient of zeros, clamping what is in range) counts as
    a change: which values a program meets is luck.
    """

    def __init__(self) -> None:
        super().__init__()
        self.changed: set[int] = set()
        self._writes: list[tuple[int, int]] = []
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def __enter__(self) -> ClonedSaves:
        super().__enter__()
        self._hooks.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hooks.__exit__(kind, error, trace)
        super().__exit__(kind, error, trace)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if args and isinstance(args[0], torch.Tensor) and INPLACE.fullmatch(name) and has_memory(args[0]):
            self._writes.append(memory_of(args[0]))
        return func(*args, **(kwargs or {}))

    def _pack(self, tensor: torch.Tensor) -> Packed:
        now = tensor.detach()
        return now, now.clone(), len(self._writes)

    def _unpack(self, packed: Packed) -> torch.Tensor:
        now, then, earlier = packed
        if not same_values(now, then) or (has_memory(now) and self._was_written(now, earlier)):
            self.changed.add(now.untyped_storage()._cdata)
        return then

    def _was_written(self, tensor: torch.Tensor, earlier: int) -> bool:
        first, last = memory_of(tensor)
        return any(first < end and start < last for start, end in self._writes[earlier:])


def has_memory(tensor: torch.Tensor) -> bool:
    """Sparse tensors have none to speak of, nor has what a function sees inside `vmap` or `torch.func.grad`."""
    wrapped: bool = torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    return tensor.layout is torch.strided and not wrapped


def memory_of(tensor: torch.Tensor) -> tuple[int, int]:
    """From the first byte of a tensor to behind its last."""
    if not tensor.numel():
        return 0, 0
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr(), tensor.data_ptr() + (reach + 1) * tensor.element_size()


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
