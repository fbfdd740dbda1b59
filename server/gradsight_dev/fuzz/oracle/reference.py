"""The gradient a program would have if nobody had touched what autograd saved.

Every saved tensor is cloned when it is saved, and the clone is handed to backward.  A gradient that differs from the plain
run was computed from changed values; a saved value that changed without changing any gradient is told apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradsight_dev.fuzz.oracle.execution import Ended, gradient_of, tensors_of
from gradsight_dev.fuzz.oracle.passes import program_line

INPLACE = re.compile(r"[a-z]\w*[a-z0-9]_|__i\w+__|__setitem__")
RESHAPING = frozenset(
    {"squeeze_", "unsqueeze_", "transpose_", "swapaxes_", "swapdims_", "as_strided_", "detach_"}
)
"""They end like writes and move version counters, and leave the memory alone."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A saved tensor, an alias of the memory it had then, its value then, and how many writes there had been."""

    tensor: torch.Tensor
    alias: torch.Tensor
    value: torch.Tensor
    earlier: int


class ClonedSaves(TorchFunctionMode):
    """A context in which backward sees saved tensors as they were when they were saved.

    A write that happens to leave the values as they are (adding a gradient of zeros, clamping what is in range) counts as
    a change: which values a program meets is luck.  It must have been torch's write, to bytes of the saved tensor itself.
    """

    def __init__(self, path: str = "<program>") -> None:
        super().__init__()
        self.changed: dict[int, set[int]] = {}
        """The storages whose saved content was changed unseen, each with the lines that are known to have written it."""
        self._path = path
        self._writes: list[tuple[int, frozenset[int]]] = []
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
        target = args[0] if args else None
        if not isinstance(target, torch.Tensor) or name in RESHAPING or not INPLACE.fullmatch(name):
            return func(*args, **(kwargs or {}))
        # What the operator itself saves, it saves as it leaves it: the write comes before.
        written = _bytes_written(target, args[1]) if name == "__setitem__" else bytes_of(target)
        self._writes.append((program_line(self._path), written))
        place = len(self._writes) - 1
        before = _version(target)
        result = func(*args, **(kwargs or {}))
        if before is not None and _version(target) == before:
            self._writes[place] = (0, frozenset())
        return result

    def _pack(self, tensor: torch.Tensor) -> Packed:
        alias = tensor.detach()
        return Packed(tensor, alias, alias.clone(), len(self._writes))

    def _unpack(self, packed: Packed) -> torch.Tensor:
        ours = bytes_of(packed.alias)
        lines = {line for line, written in self._writes[packed.earlier :] if ours & written}
        replaced = is_elsewhere(packed.tensor, packed.alias)
        if lines or replaced or not same_values(packed.alias, packed.value):
            self.changed.setdefault(packed.alias.untyped_storage()._cdata, set()).update(lines)
        return packed.value


def has_memory(tensor: torch.Tensor) -> bool:
    """Sparse tensors have none to speak of, nor has what a function sees inside `vmap` or `torch.func.grad`."""
    wrapped: bool = torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    return tensor.layout is torch.strided and not wrapped


def is_elsewhere(tensor: torch.Tensor, alias: torch.Tensor) -> bool:
    """Whether a tensor was given other memory than its alias has."""
    return has_memory(tensor) and has_memory(alias) and tensor.data_ptr() != alias.data_ptr()


def bytes_of(tensor: torch.Tensor) -> frozenset[int]:
    """The addresses of all bytes that belong to the tensor's elements."""
    if not has_memory(tensor):
        return frozenset()
    offsets = {0} if tensor.numel() else set()
    for size, stride in zip(tensor.shape, tensor.stride()):
        offsets = {offset + step * stride for offset in offsets for step in range(size)}
    return _spread(offsets, tensor)


def _bytes_written(tensor: torch.Tensor, index: Any) -> frozenset[int]:
    """The bytes that `tensor[index] = …` writes."""
    if not has_memory(tensor):
        return frozenset()
    offsets = torch.zeros((), dtype=torch.long)
    for size, stride in zip(tensor.shape, tensor.stride()):
        offsets = offsets.unsqueeze(-1) + stride * torch.arange(size)
    return _spread(set(offsets[index].flatten().tolist()), tensor)


def _spread(offsets: set[int], tensor: torch.Tensor) -> frozenset[int]:
    first, width = tensor.data_ptr(), tensor.element_size()
    return frozenset(first + offset * width + position for offset in offsets for position in range(width))


def _version(tensor: torch.Tensor) -> int | None:
    """The version counter, which inference tensors do not have."""
    return None if tensor.is_inference() else tensor._version


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
