"""Saved tensors behind hooks of the program: torch does not check their versions, so it is done here.

Whoever installs `saved_tensors_hooks` (a user, `save_on_cpu`, a checkpoint) gets what it asked for; each pack is noted with
its time, and at unpack the write log says whether the tensor that is handed back was overwritten since.  A checkpoint
packs a second time while it computes its block again, and hands back what it packed then: where that is memory which was
saved the first time, with other numbers in it, the block has changed what it computes with.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from gradsight.agent.audit import Clash, fault_of
from gradsight.agent.changes import LARGEST_COMPARED
from gradsight.agent.faults import Ledger, quietly
from gradsight.agent.graph import checksum_of, geometry_of, overlaps, storage_key, untracked
from gradsight.agent.oplog import Operation, OpLog
from gradsight.agent.recorder import Situation
from gradsight.agent.sites import Stack, capture

_MOST_NOTED = 20_000
_AGENT = os.path.dirname(os.path.abspath(__file__))


class _Packed(NamedTuple):
    """What a hook of the program made of a saved tensor, and when."""

    value: Any
    clock: int
    stack: Stack
    storage: int
    """The memory of the tensor that was saved."""
    memory: StorageWeakRef | None = None
    """Keeps the name of that memory from being given to another."""
    checksum: int = 0

    def has_changed(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor that comes back lies in the memory that was saved, which has other numbers now."""
        is_same = self.memory is not None and storage_key(tensor) == self.storage
        return is_same and bool(self.checksum) and checksum_of(tensor) != self.checksum


class _Again(NamedTuple):
    """A tensor that a hook handed on as it packed it."""

    tensor: weakref.ref[torch.Tensor]
    clock: int
    stack: Stack


class UserHooks:
    """Stands between the program's hooks and torch."""

    def __init__(self, log: OpLog, ledger: Ledger, situation: Situation) -> None:
        self.log = log
        self.ledger = ledger
        self.situation = situation
        self._handed_on: dict[int, _Again] = {}

    def install(self) -> None:
        """Every pair of hooks that is made from now on goes through here, but not the agent's own."""
        hooks: Any = torch.autograd.graph.saved_tensors_hooks
        original = hooks.__init__
        watch = self

        def begin(self: Any, pack_hook: Any, unpack_hook: Any, *args: Any, **kwargs: Any) -> None:
            original(self, pack_hook, unpack_hook, *args, **kwargs)
            if not _is_ours(pack_hook):
                self.pack_hook = lambda tensor: watch._pack(pack_hook, tensor)
                self.unpack_hook = lambda packed: watch._unpack(unpack_hook, packed)

        hooks.__init__ = begin

    def _pack(self, pack_hook: Any, tensor: torch.Tensor) -> _Packed:
        value = pack_hook(tensor)
        stack = capture(2)
        storage = storage_key(tensor)
        if isinstance(value, torch.Tensor):
            self._hand_on(value, stack)
            return _Packed(value, self.log.clock, stack, storage)
        memory, checksum = None, 0
        if storage and tensor.numel() <= LARGEST_COMPARED:
            with untracked():
                memory, checksum = StorageWeakRef(tensor.untyped_storage()), checksum_of(tensor)
        return _Packed(value, self.log.clock, stack, storage, memory, checksum)

    def _hand_on(self, tensor: torch.Tensor, stack: Stack) -> None:
        if len(self._handed_on) >= _MOST_NOTED:
            self._handed_on = {
                key: each for key, each in self._handed_on.items() if each.tensor() is not None
            }
        if len(self._handed_on) < _MOST_NOTED:
            self._handed_on[id(tensor)] = _Again(weakref.ref(tensor), self.log.clock, stack)

    def _unpack(self, unpack_hook: Any, packed: Any) -> Any:
        if not isinstance(packed, _Packed):
            return unpack_hook(packed)
        before = self.log.clock
        tensor = unpack_hook(packed.value)
        with untracked():
            self._compare(tensor, packed, before)
        return tensor

    @quietly
    def _compare(self, tensor: Any, packed: _Packed, before: int) -> None:
        """Speaks of writes since the pack, to memory that was there before the hook was asked for it."""
        if (
            not isinstance(tensor, torch.Tensor)
            or tensor.layout is not torch.strided
            or not storage_key(tensor)
        ):
            return
        again = self._handed_on.get(id(tensor))
        if packed.has_changed(tensor):
            since, until, stack = packed.clock, self.log.clock, packed.stack
        elif again is not None and again.tensor() is tensor:
            since, until, stack = again.clock, self.log.clock, again.stack
        elif storage_key(tensor) == packed.storage:
            since, until, stack = packed.clock, before, packed.stack
        else:
            # A copy that only the hooks know: when it was made, and when it was written, is their own business.
            return
        here = geometry_of(tensor)
        writes = tuple(
            write
            for write in self.log.writes_to(tensor) or ()
            if since < write.clock <= until
            and write.stack
            and write.geometry is not None
            and overlaps(write.geometry, here)
            and write.changed_something
        )
        node = torch._C._current_autograd_node()
        if not writes or node is None or "BatchNorm" in node.name():
            return
        maker = self.log.maker(node)
        saved = Operation(since, maker.name if maker is not None else "", stack)
        version = 0 if tensor.is_inference() else tensor._version
        clash = Clash(
            node, "tensor", tuple(tensor.shape), saved, writes, "", version, version, storage_key(tensor)
        )
        fault = fault_of(clash, self.situation.backward_stack, "")
        if fault is not None:
            self.ledger.add(fault)


def _is_ours(hook: Any) -> bool:
    code = getattr(getattr(hook, "__func__", hook), "__code__", None)
    return code is not None and os.path.dirname(os.path.abspath(code.co_filename)) == _AGENT
