"""Which lines read and wrote which memory, and when: the proof that two names share it, or that they do not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from gradsight.agent.graph import storage_key
from gradsight.agent.sites import FrameKey, Stack, place_of

_MOST_STORAGES = 4_000
_MOST_PLACES = 64


@dataclass
class _Memory:
    """One storage.  The reference keeps its address from being given to another one."""

    reference: StorageWeakRef
    # (instruction, whether it wrote) -> the first and the last time.
    times: dict[tuple[FrameKey, bool], list[int]] = field(default_factory=dict)
    is_gradient: bool = False
    made: Stack = ()
    """The running lines when it was made."""


class Touches:
    """Remembers the first and the last touch of every storage by every line."""

    def __init__(self) -> None:
        self._memories: dict[int, _Memory] = {}

    def note(self, tensor: torch.Tensor, stack: Stack, clock: int, wrote: bool) -> None:
        """The running lines, innermost and callers, touch this tensor."""
        if not stack or tensor.layout is not torch.strided:
            return
        key = storage_key(tensor)
        memory = self._memories.get(key) if key else None
        if memory is None:
            if not key or len(self._memories) >= _MOST_STORAGES:
                return
            memory = self._memories[key] = _Memory(StorageWeakRef(tensor.untyped_storage()))
        self._note(memory, stack, clock, wrote)

    def note_made(self, tensor: torch.Tensor, stack: Stack) -> None:
        """An operator of the running lines hands out this tensor; memory that is new was made there."""
        if not stack or tensor.layout is not torch.strided:
            return
        key = storage_key(tensor)
        if key and key not in self._memories and len(self._memories) < _MOST_STORAGES:
            self._memories[key] = _Memory(StorageWeakRef(tensor.untyped_storage()), made=stack)

    def note_gradient(self, gradient: torch.Tensor, stack: Stack, clock: int) -> None:
        """A line takes the gradient of a leaf."""
        self.note(gradient, stack, clock, False)
        memory = self._memories.get(storage_key(gradient)) if gradient.layout is torch.strided else None
        if memory is not None:
            memory.is_gradient = True

    def read_before(self, tensor: torch.Tensor, clock: int) -> FrameKey | None:
        """A line that read this tensor before that time."""
        memory = self._memories.get(storage_key(tensor)) if tensor.layout is torch.strided else None
        for (frame, wrote), (first, _) in memory.times.items() if memory is not None else ():
            if not wrote and first < clock:
                return frame
        return None

    def note_key(self, key: int, stack: Stack, clock: int) -> None:
        """The running lines write to memory that is known already."""
        memory = self._memories.get(key)
        if memory is not None and stack:
            self._note(memory, stack, clock, True)

    def _note(self, memory: _Memory, stack: Stack, clock: int, wrote: bool) -> None:
        for frame in stack:
            times = memory.times.get((frame, wrote))
            if times is not None:
                times[1] = clock
            elif len(memory.times) < _MOST_PLACES:
                memory.times[frame, wrote] = [clock, clock]

    def makers_as_json(self) -> list[list[list[Any]]]:
        """For each storage in `as_json`, in the same order: the lines that made it."""
        return [
            [[place.filename, place.row] for place in map(place_of, memory.made)] for memory in self._told()
        ]

    def _told(self) -> list[_Memory]:
        return [
            memory
            for memory in self._memories.values()
            if memory.is_gradient or any(wrote for _, wrote in memory.times)
        ]

    def as_json(self) -> list[list[dict[str, Any]]]:
        """For each storage that was written, and each gradient that was taken: the lines that touched it."""
        return [
            [
                {"filename": place.filename, "line": place.row, "wrote": wrote, "first": first, "last": last}
                for (frame, wrote), (first, last) in memory.times.items()
                for place in (place_of(frame),)
            ]
            for memory in self._told()
        ]
