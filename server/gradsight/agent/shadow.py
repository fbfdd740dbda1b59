"""The shadow of the graph: which trainable leaves a value was computed from, whether or not autograd knows.

A *leaf* gets one bit.  Every storage carries the bits of the leaves its values depend on, through `detach`, `no_grad`,
integers and numbers alike, and the *events* met on the way: places where autograd lost the path (a cut), or where a
value of the graph was changed behind its back.  At a backward the shadow of the loss is compared with the real graph.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.parameter import is_lazy

from gradsight.agent.dirty_reads import DirtyReads, DirtyWrite
from gradsight.agent.graph import Geometry, geometry_of, overlaps, storage_key
from gradsight.agent.numbering import next_number
from gradsight.agent.sites import Stack

_KEPT_STORAGES = 20_000
_MOST_LEAVES = 8192
_MOST_DIRTY = 16

Mask = int


@dataclass
class Divergence:
    """A place where autograd and the values part ways; `mask` has the leaves whose path went through it."""

    kind: str
    operator: str
    stack: Stack
    bit: int
    mask: Mask = 0
    inner: Mask = 0
    source_number: int = -1
    passed: int = 0
    live: Mask = 0
    """Of a dead part: the leaves of what it was added to.  Of a constant gradient: those it was taken with respect to.
    Of a new leaf: the leaf."""
    sources: set[int] = field(default_factory=set)
    """Of a constant gradient: the storages it was taken with respect to."""
    reads: DirtyReads = field(default_factory=DirtyReads)
    """Of a write that autograd did not record: who read the graph tensor afterwards."""


@dataclass
class Leaf:
    """A leaf tensor that asks for a gradient."""

    bit: int
    reference: weakref.ref[torch.Tensor]
    shape: tuple[int, ...]
    is_parameter: bool
    made_from: Mask = 0
    name: str = ""

    def tensor(self) -> torch.Tensor | None:
        return self.reference()


class _Entry:
    """What is known about one storage."""

    __slots__ = ("alias_events", "deps", "dirty", "events", "is_leaf", "live", "reference")

    def __init__(self, storage: Any) -> None:
        self.deps: Mask = 0
        self.events: Mask = 0
        # The latest cut that made a detached alias of this storage; it counts for the alias, not for the graph tensor.
        self.alias_events: Mask = 0
        # Writes that autograd did not record, seen only by those who read the graph tensor afterwards.
        self.dirty: list[tuple[Divergence, DirtyWrite]] = []
        # The leaves that autograd still reaches from the graph tensor of this storage.
        self.live: Mask = 0
        self.is_leaf = False
        self.reference = StorageWeakRef(storage)


@dataclass
class Shadow:
    """Leaves, storages and events of one run."""

    leaves: list[Leaf] = field(default_factory=list)
    events: list[Divergence] = field(default_factory=list)
    _entries: dict[int, _Entry] = field(default_factory=dict)
    _bits: dict[int, Leaf] = field(default_factory=dict)
    _event_keys: dict[tuple[str, Any], Divergence] = field(default_factory=dict)
    _aliases: dict[int, tuple[weakref.ref[torch.Tensor], Mask]] = field(default_factory=dict)
    latest_alias_cut: Mask = 0
    met: Mask = 0
    """The leaves that an operator has read, other than to copy or to write."""
    recorded: Mask = 0
    """Those of them that were read with grad mode on …"""
    recorded_at: dict[int, Stack] = field(default_factory=dict)
    """… and where that was first."""
    constant_gradients: Mask = 0
    """The events of gradients that were taken without `create_graph`."""
    dead_parts: Mask = 0
    """The events of such gradients that were added to something alive."""
    dead_terms: Mask = 0
    """Sums that have a constant term.  What is cut out of such a sum is a value: it brings none of its terms into a loss."""
    _passages: int = 0
    adopt: Callable[[torch.Tensor], tuple[Mask, Mask]] | None = None

    def leaf(self, tensor: torch.Tensor) -> Leaf | None:
        """The record of a leaf; made when the leaf is first met."""
        leaf = self._bits.get(id(tensor))
        if leaf is not None and leaf.reference() is tensor:
            return leaf
        if len(self.leaves) >= _MOST_LEAVES or is_lazy(tensor):
            return None
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        leaf = Leaf(len(self.leaves), weakref.ref(tensor), tuple(tensor.shape), is_parameter)
        self.leaves.append(leaf)
        self._bits[id(tensor)] = leaf
        if tensor.layout is torch.strided:
            entry = self._entry(tensor)
            if entry is not None:
                leaf.made_from = entry.deps
                entry.deps |= 1 << leaf.bit
                entry.live = 1 << leaf.bit
                entry.is_leaf = True
        return leaf

    def note_recorded(self, leaves: Mask, stack: Stack) -> None:
        """An operator with grad mode on read these leaves for the first time."""
        self.recorded |= leaves
        for leaf in self.leaves_in(leaves):
            self.recorded_at[leaf.bit] = stack

    def known_leaf(self, tensor: torch.Tensor) -> Leaf | None:
        """The record of a leaf that was met before."""
        leaf = self._bits.get(id(tensor))
        return leaf if leaf is not None and leaf.reference() is tensor else None

    def read(self, tensor: torch.Tensor, views: bool = False) -> tuple[Mask, Mask, Mask]:
        """The leaves this value depends on, those of them that autograd reaches, and the events on the way.

        Who only makes a view reads no element, so a write to one of them is not on the way.
        """
        if tensor.layout is not torch.strided:
            return 0, 0, 0
        needs_grad = tensor.requires_grad
        # Of a view made with grad mode off, whose base was written since, torch does not even say whether it is a leaf.
        is_leaf = not tensor._is_view() and tensor.is_leaf
        if needs_grad and is_leaf:
            leaf = self._bits.get(id(tensor))
            if leaf is None or leaf.reference() is not tensor:
                self.leaf(tensor)
        key = storage_key(tensor)
        entry = self._entries.get(key)
        if entry is None:
            return self._adopt(tensor) if key and self.adopt is not None else (0, 0, 0)
        events = entry.events
        if not needs_grad:
            events &= ~self.dead_terms
            own = self._aliases.get(id(tensor)) if self._aliases else None
            events |= own[1] if own is not None and own[0]() is tensor else entry.alias_events
            return entry.deps, 0, events
        if entry.dirty and not views and not is_leaf:
            here = geometry_of(tensor)
            for event, written in entry.dirty:
                if overlaps(here, written.geometry):
                    events |= 1 << event.bit
                    event.reads.note(tensor, here, written)
        return entry.deps, entry.live, events

    def _adopt(self, tensor: torch.Tensor) -> tuple[Mask, Mask, Mask]:
        """A storage that nobody saw being made: its values may be numbers that came from the graph."""
        assert self.adopt is not None
        deps, events = self.adopt(tensor)
        if deps:
            self.write(tensor, deps, events, 0)
        return deps, 0, events

    def write(self, tensor: torch.Tensor, deps: Mask, events: Mask, live: Mask) -> None:
        """This value now also depends on these leaves."""
        entry = self._entry(tensor)
        if entry is None:
            return
        entry.deps |= deps
        entry.events |= events
        entry.live |= live

    def write_alias(self, tensor: torch.Tensor, deps: Mask, events: Mask, cut: Mask) -> None:
        """A detached alias of a storage: the cut counts for the alias alone."""
        entry = self._entry(tensor)
        if entry is None:
            return
        entry.deps |= deps
        entry.events |= events
        entry.alias_events = cut
        self.latest_alias_cut = cut

    def name_alias(self, tensor: torch.Tensor) -> None:
        """This very object is the alias that the latest cut made."""
        if not self.latest_alias_cut:
            return
        key = id(tensor)
        aliases = self._aliases
        aliases[key] = (weakref.ref(tensor, lambda _: aliases.pop(key, None) and None), self.latest_alias_cut)
        self.latest_alias_cut = 0

    def soil(self, tensor: torch.Tensor, event: Divergence) -> None:
        """Notes that a graph value was changed without autograd knowing."""
        entry = self._entries.get(storage_key(tensor))
        if entry is not None and len(entry.dirty) < _MOST_DIRTY:
            entry.dirty.append((event, DirtyWrite(next_number(), geometry_of(tensor))))

    def soil_memory(self, key: int, geometry: Geometry, stack: Stack) -> None:
        """Notes that NumPy changed these elements of a storage; it matters when a graph value lies there."""
        if self._holds_graph_value(key):
            entry = self._entries[key]
            if len(entry.dirty) < _MOST_DIRTY:
                event = self.event("dirty-numpy", "numpy", stack, 0)
                entry.dirty.append((event, DirtyWrite(next_number(), geometry)))

    def is_tracked(self, tensor: torch.Tensor) -> bool:
        """Whether this storage holds a value of the graph, or a leaf of it."""
        entry = self._entries.get(storage_key(tensor))
        return entry is not None and entry.live != 0

    def is_graph_value(self, tensor: torch.Tensor) -> bool:
        """Whether this storage holds a value of the graph that is no leaf."""
        return self._holds_graph_value(storage_key(tensor))

    def _holds_graph_value(self, key: int) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.live != 0 and not entry.is_leaf

    def alias_kind(self, tensor: torch.Tensor) -> str:
        """How this alias of a graph value was made: the kind of its cut, or nothing when it is no alias."""
        own = self._aliases.get(id(tensor))
        if own is not None and own[0]() is tensor:
            mask = own[1]
        else:
            entry = self._entries.get(storage_key(tensor))
            mask = entry.alias_events if entry is not None else 0
        return self.events[mask.bit_length() - 1].kind if mask else ""

    def event(self, kind: str, operator: str, stack: Stack, mask: Mask) -> Divergence:
        """The event of this kind at this place; one place is one event however often it is passed."""
        key = (kind, stack[:1])
        event = self._event_keys.get(key)
        if event is None:
            event = Divergence(kind, operator, stack, len(self.events))
            self._event_keys[key] = event
            self.events.append(event)
        event.mask |= mask
        self._passages += 1
        event.passed = self._passages
        return event

    def events_in(self, mask: Mask) -> list[Divergence]:
        """The events of a mask, oldest first."""
        return [event for event in self.events if mask >> event.bit & 1]

    def leaves_in(self, mask: Mask) -> list[Leaf]:
        """The leaves of a mask."""
        found = []
        while mask:
            low = mask & -mask
            found.append(self.leaves[low.bit_length() - 1])
            mask ^= low
        return found

    def _entry(self, tensor: torch.Tensor) -> _Entry | None:
        key = storage_key(tensor) if tensor.layout is torch.strided else 0
        if not key:
            return None
        entry = self._entries.get(key)
        if entry is None:
            # The weak reference keeps the address from being reused while the entry is in the table.
            entry = self._entries[key] = _Entry(tensor.untyped_storage())
            if len(self._entries) > _KEPT_STORAGES:
                self._entries = {k: e for k, e in self._entries.items() if not e.reference.expired()}
        return entry
