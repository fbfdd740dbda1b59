"""The log of a run: which user line made each graph node, and which lines wrote to each storage.

Every graph node carries a sequence number, handed out per thread in rising order.  An *operation* is logged with the
number that comes next while it runs, so a node with number `n` was made by the first operation logged with a larger one.
"""

from __future__ import annotations

import re
import threading
import weakref
from bisect import bisect_left
from collections import deque
from typing import NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from gradsight.agent.changes import NEEDS_ONLY_SIGN, Change
from gradsight.agent.graph import Geometry, Imprint, Node, Witness, storage_key
from gradsight.agent.numbering import IS_NATIVE, number_of
from gradsight.agent.sites import FrameKey, Stack
from gradsight.agent.touches import Touches

_KEPT_OPERATIONS = 400_000
_KEPT_WRITES = 48
_KEPT_STORAGES = 40_000
_KEPT_EXPOSURES = 2_000
_PER_NUMBER = 4

NUMPY = "numpy"
"""The name of a write that no operator of torch made."""

# These nodes are created after their operator has run; the operator before them made them.
_MADE_AFTERWARDS = ("CopySlices", "AsStridedBackward0")


class Operation(NamedTuple):
    """One operator call: when, which, from where."""

    clock: int
    name: str
    stack: Stack


class LoggedWrite(NamedTuple):
    """One write to a storage.  `version` is the counter before it; `node` the graph node that was running, if any.

    With an `imprint` it is no write yet: from here on NumPy can write, and only the values tell whether it did.
    """

    clock: int
    name: str
    stack: Stack
    version: int
    geometry: Geometry | None
    node: str
    to_leaf: bool
    by_optimizer: bool = False
    witness: Witness | None = None
    imprint: Imprint | None = None
    library: FrameKey | None = None
    """The line of a library that wrote, where it was not the user's."""
    change: Change | None = None

    @property
    def changed_something(self) -> bool:
        """Whether the values are other ones now; known where a witness was left, or where the numbers were compared."""
        if self.change is not None and self.change.kind == "none":
            return False
        return self.witness is None or self.witness.changed

    def is_felt_by(self, node: Node) -> bool:
        """Whether the backward of a node that saved the tensor can give another result after this write."""
        only_scaled = self.change is not None and self.change.kind == "scaled"
        return self.changed_something and not (only_scaled and node.name() in NEEDS_ONLY_SIGN)


class _Track:
    """The operations of one thread, sorted by sequence number."""

    def __init__(self, whole_calls: bool) -> None:
        self.whole_calls = whole_calls
        self.numbers: list[int] = []
        self.operations: list[list[Operation]] = []

    def add(self, number: int, operation: Operation) -> None:
        if self.numbers and number <= self.numbers[-1]:
            at = bisect_left(self.numbers, number)
            if at < len(self.numbers) and self.numbers[at] == number:
                if len(self.operations[at]) < _PER_NUMBER:
                    self.operations[at].append(operation)
                return
            self.numbers.insert(at, number)
            self.operations.insert(at, [operation])
            return
        self.numbers.append(number)
        self.operations.append([operation])
        if len(self.numbers) > _KEPT_OPERATIONS:
            half = _KEPT_OPERATIONS // 2
            del self.numbers[:half]
            del self.operations[:half]

    def claim(self, number: int, operation: Operation) -> None:
        """Names the maker of the node with the number before this one, ahead of the operations inside it."""
        at = bisect_left(self.numbers, number)
        if at < len(self.numbers) and self.numbers[at] == number:
            self.operations[at].insert(0, operation)
        else:
            self.numbers.insert(at, number)
            self.operations.insert(at, [operation])

    def wants(self, number: int) -> bool:
        """Whether one more operation with this number would be kept; asked before the stack is captured."""
        if not self.numbers or number > self.numbers[-1]:
            return True
        if number == self.numbers[-1]:
            return len(self.operations[-1]) < _PER_NUMBER
        return True

    def find(self, node_number: int, node_name: str) -> Operation | None:
        at = bisect_left(self.numbers, node_number + 1)
        exact = at < len(self.numbers) and self.numbers[at] == node_number + 1
        if not exact and not self.whole_calls and node_name.rsplit("::", 1)[-1] in _MADE_AFTERWARDS:
            at -= 1
        if not 0 <= at < len(self.numbers):
            return None
        wanted = _bare(node_name)
        for operation in self.operations[at]:
            if _bare(operation.name) == wanted:
                return operation
        return self.operations[at][0]


def _bare(name: str) -> str:
    """`ExpBackward0` and `aten::exp_` both become `exp`."""
    name = name.rsplit("::", 1)[-1].split(".")[0]
    return re.sub(r"Backward\d*$", "", name).replace("_", "").lower()


class OpLog:
    """Operations by sequence number and writes by storage, on one clock.

    With `whole_calls` an operation is logged after it ran, and so covers every node it made.
    """

    def __init__(self, whole_calls: bool = False) -> None:
        self.clock = 0
        # Numbers of our own are given when a call is over, and the call is logged then.
        whole_calls = self._whole_calls = whole_calls or not IS_NATIVE
        self._tracks: dict[int, _Track] = {}
        self._main = self._tracks[threading.get_ident()] = _Track(whole_calls)
        self._writes: dict[int, deque[LoggedWrite]] = {}
        self._alive: dict[int, StorageWeakRef] = {}
        self._exposures: dict[int, tuple[StorageWeakRef, LoggedWrite]] = {}
        self.touches: Touches | None = None
        self._replaced: dict[int, tuple[weakref.ref[torch.Tensor], LoggedWrite]] = {}

    def track(self) -> _Track:
        """The operations of the running thread."""
        ident = threading.get_ident()
        track = self._tracks.get(ident)
        if track is None:
            track = self._tracks[ident] = _Track(self._whole_calls)
        return track

    def maker(self, node: Node) -> Operation | None:
        """The operation that created a graph node."""
        number = number_of(node)
        if number < 0:
            return None
        name = node.name()
        tracks = [self._main] + [track for track in self._tracks.values() if track is not self._main]
        best: Operation | None = None
        for track in tracks:
            found = track.find(number, name)
            if found is not None and _bare(found.name) == _bare(name):
                return found
            if best is None:
                best = found
        return best

    def ran_since(self, stack: Stack, clock: int) -> bool:
        """Whether the place of this stack was executed again after that time."""
        for track in self._tracks.values():
            for operations in reversed(track.operations):
                if operations[-1].clock <= clock:
                    break
                if any(item.stack[:1] == stack[:1] for item in operations):
                    return True
        return False

    def latest(self, name: str) -> Operation | None:
        """The latest operation with this name."""
        wanted = _bare(name)
        best: Operation | None = None
        for track in self._tracks.values():
            for operations in reversed(track.operations[-5000:]):
                found = next((item for item in reversed(operations) if _bare(item.name) == wanted), None)
                if found is not None:
                    if best is None or found.clock > best.clock:
                        best = found
                    break
        return best

    def note_write(self, tensor: torch.Tensor, write: LoggedWrite) -> None:
        """Remembers a write to the storage of this tensor."""
        key = storage_key(tensor)
        if not key:
            return
        entries = self._writes.get(key)
        if entries is None:
            entries = self._writes[key] = deque(maxlen=_KEPT_WRITES)
            # While the weak reference lives the address of the storage is not reused for another one.
            self._alive[key] = StorageWeakRef(tensor.untyped_storage())
            if len(self._writes) > _KEPT_STORAGES:
                self._forget_dead_storages()
        entries.append(write)
        if self.touches is not None:
            self.touches.note(tensor, write.stack, write.clock, True)

    def note_write_to(self, key: int, reference: StorageWeakRef, write: LoggedWrite) -> None:
        """Remembers a write to a storage that no tensor at hand belongs to."""
        if key not in self._writes:
            self._writes[key] = deque(maxlen=_KEPT_WRITES)
            self._alive[key] = reference
        self._writes[key].append(write)
        if self.touches is not None:
            self.touches.note_key(key, write.stack, write.clock)

    def note_replaced(self, owner: torch.Tensor, write: LoggedWrite) -> None:
        """`owner.data = ...` gave a tensor other values, with other memory: who saved the tensor has those now."""
        self._replaced[id(owner)] = (weakref.ref(owner), write)
        if len(self._replaced) > _KEPT_STORAGES:
            self._replaced = {key: each for key, each in self._replaced.items() if each[0]() is not None}

    def replaced(self, tensor: torch.Tensor) -> LoggedWrite | None:
        """The last time that this very tensor was given other memory; an alias of it has the old one still."""
        found = self._replaced.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def gave_other_values(self, write: LoggedWrite) -> bool:
        """Whether this `.data = ...` gave its tensor other values than it had."""
        return any(each is write for _, each in self._replaced.values())

    def writes_to(self, tensor: torch.Tensor) -> deque[LoggedWrite] | None:
        """The writes to the storage of this tensor, oldest first."""
        return self._writes.get(storage_key(tensor))

    def may_have_changed(self, tensor: torch.Tensor) -> bool:
        """Whether anybody wrote to the storage of this tensor, or NumPy can."""
        key = storage_key(tensor)
        return key in self._writes or key in self._exposures or id(tensor) in self._replaced

    def note_exposure(self, tensor: torch.Tensor, stack: Stack, imprint: Imprint) -> None:
        """From here on NumPy can write to these elements."""
        key = storage_key(tensor)
        if not key:
            return
        write = LoggedWrite(self.clock, NUMPY, stack, 0, imprint.geometry, "", False, imprint=imprint)
        self._exposures[key] = (StorageWeakRef(tensor.untyped_storage()), write)
        if len(self._exposures) > _KEPT_EXPOSURES:
            self._exposures = {k: each for k, each in self._exposures.items() if not each[0].expired()}

    def exposed(self, tensor: torch.Tensor) -> LoggedWrite | None:
        """Where NumPy got hold of the memory of this tensor, last."""
        found = self._exposures.get(storage_key(tensor))
        return found[1] if found is not None else None

    def hidden_write(self, tensor: torch.Tensor, since: int) -> LoggedWrite | None:
        """A write that nobody noted, to elements that NumPy got hold of after that time."""
        return self._exposure(tensor, since, is_changed=True)

    def is_untouched(self, tensor: torch.Tensor, since: int) -> bool:
        """Whether NumPy got hold of these elements after that time, and they have the same values still."""
        return self._exposure(tensor, since, is_changed=False) is not None

    def _exposure(self, tensor: torch.Tensor, since: int, is_changed: bool) -> LoggedWrite | None:
        found = self._exposures.get(storage_key(tensor)) if self._exposures else None
        write = found[1] if found is not None else None
        if write is None or write.imprint is None or write.clock < since:
            return None
        if not write.imprint.covers(tensor):
            return None
        return write if write.imprint.differs_from(tensor) is is_changed else None

    def all_writes(self) -> list[LoggedWrite]:
        """Every write that is still remembered, oldest first."""
        return sorted(
            (write for entries in self._writes.values() for write in entries), key=lambda item: item.clock
        )

    @property
    def has_writes(self) -> bool:
        return bool(self._writes or self._exposures)

    def _forget_dead_storages(self) -> None:
        for key in [key for key, reference in self._alive.items() if reference.expired()]:
            del self._alive[key]
            del self._writes[key]


def operator_label(name: str) -> str:
    """`aten::add_` -> `add_`; names of the Python API stay whole."""
    return name.rsplit("::", 1)[-1].split(".")[0] if "::" in name else name
