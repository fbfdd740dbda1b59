"""Values that were meant to be kept and were not: one tensor stored many times, a state that follows the model.

`states.append(state)` keeps a reference.  When `state` is then written in place, every entry shows the last value.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import torch

from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.graph import geometry_of, overlaps, storage_key, untracked
from gradsight.agent.numbering import node_of, number_of
from gradsight.agent.oplog import OpLog, operator_label
from gradsight.agent.sites import Stack, capture, names_read, place_of, statement_of, text_of

_MOST_STORED = 10_000
_MOST_ENTRIES = 10_000
# Two entries may be meant as one tensor under two names; from three on, each written before the next, they are not.
_FEWEST_ENTRIES = 3
_MOST_SEARCHES = 4


@dataclass
class _Stored:
    reference: weakref.ref[torch.Tensor]
    times: list[tuple[int, int, Stack]] = field(default_factory=list)


class Snapshots:
    """Remembers when tensors were put into collections and when a state was taken."""

    def __init__(self, log: OpLog, ledger: Ledger) -> None:
        self.log = log
        self.ledger = ledger
        self._stored: dict[int, _Stored] = {}
        self._states: dict[int, tuple[int, Stack]] = {}
        self._numbers: dict[int, Stack] = {}
        self._entries: dict[int, _Stored] = {}
        self._lists: dict[int, list[Stack]] = {}
        self._searches = 0
        # Tensors that lie in a collection many times, and were changed between; read by any other name they lie.
        self.suspects: dict[int, _Stored] = {}
        self.held_since: Callable[[torch.Tensor], tuple[int, Stack] | None] = lambda _: None
        self.names_of: Callable[[torch.Tensor], Collection[str]] = lambda _: ()
        self.on_store: Callable[[torch.Tensor, Stack], None] | None = None
        self.on_call: Callable[[Any, str, Stack], None] | None = None

    def store(self, value: Any) -> Any:
        """Called by `items.append(value)` of the user's code; hands the value through."""
        stack: Stack = ()
        for tensor in _tensors_in(value, 2):
            stack = stack or capture(2)
            with untracked():
                if not tensor.is_inference():
                    self._remember(tensor, stack)
                    if self.on_store is not None:
                        self.on_store(tensor, stack)
        return value

    def stored_at(self, number: int) -> Stack:
        """The line that put the tensor of this graph node into a collection."""
        return self._numbers.get(number, ())

    @quietly
    def _remember(self, tensor: torch.Tensor, stack: Stack) -> None:
        stored = _stored_in(self._stored, tensor)
        if len(stored.times) < 64:
            stored.times.append((self.log.clock, tensor._version, stack))
        self._note_number(tensor, stack)

    def _note_number(self, tensor: torch.Tensor, stack: Stack) -> None:
        number = number_of(node_of(tensor))
        if number >= 0 and len(self._numbers) < _MOST_STORED:
            self._numbers[number] = stack

    # Entries that are assigned: `table[key] = x`.

    def kept(self, tensor: torch.Tensor, stack: Stack, is_entry: bool) -> None:
        """A tensor is assigned to an attribute or to an entry of something."""
        self._note_number(tensor, stack)
        if not is_entry:
            return
        entry = _stored_in(self._entries, tensor)
        version = tensor._version
        if entry.times and (entry.times[-1][1] == version or entry.times[-1][2][0] != stack[0]):
            entry.times.clear()
        if len(entry.times) < 64:
            entry.times.append((self.log.clock, version, stack))
        if len(entry.times) >= _FEWEST_ENTRIES:
            self.suspects[id(tensor)] = entry

    def stored_in_tensor(self, value: Any) -> None:
        """What was to be an entry of a collection is written into a tensor, which copies it."""
        entry = self._entries.get(id(value))
        if entry is not None and entry.times:
            entry.times.pop()
            self.suspects.pop(id(value), None)

    @quietly
    def read(self, tensor: torch.Tensor, reader: Stack) -> None:
        """A suspect is used; by a name of its own that is nothing special."""
        entry = self.suspects.get(id(tensor))
        if entry is None or entry.reference() is not tensor or not reader:
            return
        statement = statement_of(reader[0])
        if statement is None or names_read(statement) & {*self.names_of(tensor)}:
            return
        if self._searches >= _MOST_SEARCHES or statement is statement_of(entry.times[0][2][0]):
            return
        del self.suspects[id(tensor)]
        self._searches += 1
        if _entries_in_one_collection(tensor) >= _FEWEST_ENTRIES:
            self._report_stored(tensor, entry, reader)

    # Collections that are read as a whole.

    @quietly
    def bound_list(self, first: Any, last: Any, stack: Stack) -> None:
        """A statement bound a list with these ends: they may be one tensor, or rows that have one in common."""
        ends = zip(first, last) if type(first) is tuple and type(last) is tuple else ((first, last),)
        for left, right in ends:
            if left is right and isinstance(left, torch.Tensor) and stack:
                key = storage_key(left)
                if key and len(self._lists) < _MOST_STORED:
                    self._lists.setdefault(key, []).append(stack)

    @quietly
    def collected(self, tensors: Any, reader: Stack) -> None:
        """A list of tensors is read as one (`stack`, `cat`): entries that are one and the same tensor."""
        if not isinstance(tensors, (list, tuple)) or not 1 < len(tensors) <= _MOST_ENTRIES:
            return
        seen: set[int] = set()
        for tensor in tensors:
            if id(tensor) in seen:
                self._judge(tensor, reader, sum(1 for item in tensors if item is tensor))
                return
            seen.add(id(tensor))
        first, last = tensors[0], tensors[-1]
        if isinstance(first, torch.Tensor) and isinstance(last, torch.Tensor) and _is_same(first, last):
            self._judge_collected(first, reader, sum(1 for item in tensors if _is_same(first, item)))

    def _judge(self, tensor: torch.Tensor, reader: Stack, count: int) -> None:
        stored = self.suspects.get(id(tensor)) or self._stored.get(id(tensor))
        if stored is None or stored.reference() is not tensor or len(stored.times) < 2:
            self._judge_collected(tensor, reader, count)
        else:
            self._report_stored(tensor, stored, reader)

    def _report_stored(self, tensor: torch.Tensor, stored: _Stored, reader: Stack) -> None:
        first_clock, first_version, first_stack = stored.times[0]
        last_version = stored.times[-1][1]
        if last_version == first_version or not first_stack:
            return
        writes = [
            write for write in self.log.writes_to(tensor) or () if write.clock > first_clock and write.stack
        ]
        if not writes:
            return
        # In one function the write is what to change; when another function owns the buffer, storing it is.
        together = writes[0].stack[0].code is first_stack[0].code
        place = place_of(writes[0].stack[0] if together else first_stack[0])
        entry = text_of(place_of(first_stack[0]))
        changed = text_of(place_of(writes[0].stack[0]))
        message = f"`{changed}` changes the tensor that `{entry}` has stored: every entry is the same tensor"
        steps = (
            *step_at("made", "stored here without a copy", first_stack),
            *step_at("written", f"changed here by `{operator_label(writes[0].name)}`", writes[0].stack),
            *step_at("read", "all entries have the last value", reader),
        )
        evidence = {"entries": len(stored.times), "versions": [first_version, last_version]}
        self.ledger.add(Fault("alias-read-after-write", message, place, steps, "warning", evidence))

    def _judge_collected(self, tensor: torch.Tensor, reader: Stack, count: int) -> None:
        """Entries that came out of a generator or a comprehension: the statement that made the list also wrote to the
        tensor, as often as it took it."""
        if count < 2 or not reader:
            return
        here = geometry_of(tensor)
        writes = [
            write
            for write in self.log.writes_to(tensor) or ()
            if write.stack
            and not write.by_optimizer
            and (write.geometry is None or overlaps(write.geometry, here))
        ]
        makers = [statement_of(stack[0]) for stack in (reader, *self._lists.get(storage_key(tensor), ()))]
        lines = [
            write
            for write in writes
            if write.stack[:1] == writes[-1].stack[:1]
            and any(statement_of(key) in makers for key in write.stack[1:])
        ]
        if len(lines) < max(2, count - 1):
            return
        place = place_of(lines[-1].stack[0])
        message = f"`{text_of(place)}` refills a tensor that was collected {count} times: every entry is the same tensor"
        steps = step_at("read", "all entries have the last value", reader)
        self.ledger.add(Fault("alias-read-after-write", message, place, steps, "warning", {"entries": count}))

    def called(self, owner: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        """Stands for `owner.method(...)` as a statement of the user's code; the result of a pure method is lost."""
        value = getattr(owner, method)(*args, **kwargs)
        if isinstance(owner, torch.Tensor) and isinstance(value, torch.Tensor) and value is not owner:
            stack = capture(2)
            if stack:
                place = place_of(stack[0])
                message = f"the result of `{text_of(place)}` is dropped: `{method}` does not change the tensor itself"
                twin = f"{method}_" if hasattr(torch.Tensor, method + "_") else ""
                self.ledger.add(
                    Fault("result-ignored", message, place, (), "warning", {"in_place_form": twin})
                )
        elif self.on_call is not None and not isinstance(owner, torch.Tensor):
            self.on_call(owner, method, capture(2))
        return value

    def install(self) -> None:
        """Watches states that are taken from a module and loaded back."""
        module: Any = torch.nn.Module
        take, load = module.state_dict, module.load_state_dict
        snapshots = self

        def state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
            state = take(self, *args, **kwargs)
            if not kwargs.get("prefix"):
                stack = capture(2)
                with untracked():
                    for value in state.values():
                        if isinstance(value, torch.Tensor):
                            snapshots._states[id(value)] = (snapshots.log.clock, stack)
            return state

        def load_state_dict(self: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
            stack = capture(2)
            with untracked():
                snapshots._judge_state(self, state, stack)
            return load(self, state, *args, **kwargs)

        module.state_dict = state_dict
        module.load_state_dict = load_state_dict

    @quietly
    def _judge_state(self, module: torch.nn.Module, state: Any, reader: Stack) -> None:
        """A state that shares its storage with the module it is loaded into restores nothing."""
        if not hasattr(state, "items"):
            return
        own = dict((*module.named_parameters(), *module.named_buffers()))
        for name, value in state.items():
            tensor = own.get(name)
            if not isinstance(value, torch.Tensor) or tensor is None or tensor.layout is not torch.strided:
                continue
            if storage_key(value) != storage_key(tensor):
                continue
            taken = self._states.get(id(value)) or self.held_since(value)
            if taken is None or not taken[1]:
                continue
            writes = [
                write for write in self.log.writes_to(tensor) or () if write.clock > taken[0] and write.stack
            ]
            if not writes:
                continue
            place = place_of(taken[1][0])
            message = f"`{text_of(place)}` is not a copy: the saved state changes with the model, and loading it restores nothing"
            steps = (
                *step_at("written", "the model changes here, and the saved state with it", writes[0].stack),
                *step_at("read", "loaded back here", reader),
            )
            self.ledger.add(
                Fault("alias-read-after-write", message, place, steps, "warning", {"entry": name})
            )
            return


def _tensors_in(value: Any, depth: int) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if depth and isinstance(value, (list, tuple)) and len(value) < 32:
        return [tensor for item in value for tensor in _tensors_in(item, depth - 1)]
    if depth and isinstance(value, dict) and len(value) < 32:
        return [tensor for item in value.values() for tensor in _tensors_in(item, depth - 1)]
    return []


def _is_same(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two tensors are one and the same, or lie over the same elements of one."""
    if left is right:
        return True
    if left.layout is not torch.strided or right.layout is not torch.strided or left.shape != right.shape:
        return False
    key = storage_key(left)
    return bool(key) and key == storage_key(right) and geometry_of(left) == geometry_of(right)


def _entries_in_one_collection(tensor: torch.Tensor) -> int:
    """How often a tensor lies in one list or dictionary; the variables of a module are no collection."""
    most = 0
    for holder in gc.get_referrers(tensor):
        if isinstance(holder, list):
            most = max(most, sum(1 for item in holder if item is tensor))
        elif isinstance(holder, dict) and "__builtins__" not in holder:
            most = max(most, sum(1 for item in holder.values() if item is tensor))
    return most


def _stored_in(table: dict[int, _Stored], tensor: torch.Tensor) -> _Stored:
    """What a table knows of a tensor; a tensor that is gone may have left its place to this one."""
    stored = table.get(id(tensor))
    if stored is None or stored.reference() is not tensor:
        if len(table) > _MOST_STORED:
            for key in [key for key, item in table.items() if item.reference() is None]:
                del table[key]
        stored = table[id(tensor)] = _Stored(weakref.ref(tensor))
    return stored
