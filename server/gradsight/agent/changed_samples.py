"""Samples that a dataset keeps and changes whenever it is asked for them: each epoch sees other data than the one before.

`image = self.images[i]; image -= mean` writes to what the dataset holds.  The memory is the same at the next epoch, and
nobody has refilled it in between.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from gradsight.agent.faults import Fault, Ledger, calls_of, quietly, step_at
from gradsight.agent.graph import Geometry, geometry_of, overlaps, storage_key
from gradsight.agent.oplog import OpLog
from gradsight.agent.sites import FrameKey, Stack, place_of, text_of
from gradsight.agent.training import TrainingWatch
from gradsight.agent.traits import Trait

_MOST_SAMPLES = 4_000
_REFILLS = frozenset(("copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "set_"))


class ChangedSamples:
    """Remembers which samples were written while they were fetched."""

    def __init__(self, log: OpLog, ledger: Ledger, training: TrainingWatch) -> None:
        self.log = log
        self.ledger = ledger
        self.training = training
        # Line and elements -> the memory, when it was written there last, and after how many backwards.
        self._written: dict[tuple[FrameKey, int, Geometry], tuple[StorageWeakRef, int, int, Any]] = {}
        # Where the memory of a tensor that lies in an array begins -> the array that owns it.
        self._arrays: dict[int, weakref.ref[Any]] = {}

    def lies_in(self, tensor: torch.Tensor, array: Any) -> torch.Tensor:
        """`torch.from_numpy(array)`: the memory lives as long as the array that owns it, whatever becomes of the tensor."""
        owner = array
        for _ in range(8):
            inner = getattr(owner, "base", None)
            if inner is None or not hasattr(inner, "__array_interface__"):
                break
            owner = inner
        if len(self._arrays) < _MOST_SAMPLES:
            with contextlib.suppress(TypeError), torch._C.DisableTorchFunction():
                self._arrays[tensor.untyped_storage().data_ptr()] = weakref.ref(owner)
        return tensor

    def _owner(self, tensor: torch.Tensor) -> Any:
        """The array that a tensor lies in; None if there is none."""
        reference = self._arrays.get(tensor.untyped_storage().data_ptr())
        return reference() if reference is not None else None

    @quietly
    def written(self, tensor: torch.Tensor, trait: Trait, stack: Stack) -> None:
        """An operator is about to write to this tensor."""
        if trait.overwrites or _bare(trait) in _REFILLS or tensor.requires_grad or tensor.numel() < 2:
            return
        if not tensor.is_floating_point() or not any(key.code.co_name == "__getitem__" for key in stack):
            return
        owner = self._owner(tensor) if self._arrays else None
        # Each tensor on an array has a storage of its own; what they share is where it begins.
        identity = tensor.untyped_storage().data_ptr() if owner is not None else storage_key(tensor)
        here = geometry_of(tensor)
        key = (stack[0], identity, here)
        before = self._written.get(key)
        if not identity or (before is None and len(self._written) >= _MOST_SAMPLES):
            return
        backwards = self.training.backwards
        self._written[key] = (
            StorageWeakRef(tensor.untyped_storage()),
            self.log.clock,
            backwards,
            weakref.ref(owner) if owner is not None else None,
        )
        if before is None or before[2] == backwards:
            return
        if before[0].expired() and (owner is None or before[3] is None or before[3]() is not owner):
            return
        if not self._is_refilled(tensor, here, before[1]):
            self._report(stack)

    def _is_refilled(self, tensor: torch.Tensor, here: Geometry, since: int) -> bool:
        return any(
            write.clock > since
            and write.name.rpartition("::")[2].partition(".")[0] in _REFILLS
            and (write.geometry is None or overlaps(write.geometry, here))
            for write in self.log.writes_to(tensor) or ()
        )

    def _report(self, stack: Stack) -> None:
        place = place_of(stack[0])
        message = f"`{text_of(place)}` changes the sample that the dataset keeps, again at every fetch"
        steps = (*step_at("written", "the same memory is changed again here", stack), *calls_of(stack))
        self.ledger.add(Fault("alias-read-after-write", message, place, steps, "warning", {}))


def _bare(trait: Trait) -> str:
    return trait.name.rpartition("::")[2].partition(".")[0]
