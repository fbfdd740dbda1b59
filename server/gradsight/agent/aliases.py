"""Two names for one tensor: differences with itself, swapped views, repeated list entries, NumPy arrays that share memory."""

from __future__ import annotations

import ast
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.graph import (
    Geometry,
    Imprint,
    checksum_of,
    geometry_of,
    overlaps,
    storage_key,
    untracked,
)
from gradsight.agent.oplog import NUMPY, OpLog, Write, operator_label
from gradsight.agent.sites import Stack, feeds_itself, names_read, place_of, statement_of, text_of

_MOST_NAMES = 6000
_LARGEST_EXPOSED = 1 << 22
_ARRAY_METHODS = frozenset(("fill", "sort", "put", "partition", "itemset", "resize"))


@dataclass
class _Bound:
    reference: weakref.ref[torch.Tensor]
    # Name -> when and where it was last bound to this tensor.
    names: dict[str, tuple[int, Stack]] = field(default_factory=dict)
    # The name under which it was changed while it had others, and where.
    changed_as: str = ""
    changed_at: Stack = ()


@dataclass(frozen=True)
class _Shared:
    """A storage whose memory NumPy can write."""

    reference: StorageWeakRef
    start: int
    end: int
    item_size: int


class Aliases:
    """Remembers which names were bound to which tensor, and when."""

    def __init__(self, log: OpLog, ledger: Ledger) -> None:
        self.log = log
        self.ledger = ledger
        self._bound: dict[int, _Bound] = {}
        self._shared: dict[int, _Shared] = {}
        self._repeated: dict[int, int] = {}
        self.changed: dict[int, _Bound] = {}

    # Names.

    @quietly
    def bind(self, name: str, tensor: torch.Tensor, stack: Stack, changed: bool) -> None:
        """A statement of the user bound this name, or changed the tensor under it."""
        bound = self._bound.get(id(tensor))
        if bound is None or bound.reference() is not tensor:
            if len(self._bound) > _MOST_NAMES:
                self._bound = {key: item for key, item in self._bound.items() if item.reference() is not None}
            bound = self._bound[id(tensor)] = _Bound(weakref.ref(tensor))
        if changed:
            if len(bound.names) > 1 and name in bound.names and not bound.changed_as:
                bound.changed_as, bound.changed_at = name, stack
                self.changed[id(tensor)] = bound
            bound.names.setdefault(name, (self.log.clock, stack))
        elif len(bound.names) < 8 or name in bound.names:
            bound.names[name] = (self.log.clock, stack)

    @quietly
    def used(self, tensor: torch.Tensor, reader: Stack) -> None:
        """A tensor that was changed under one of its names is read."""
        bound = self.changed.get(id(tensor))
        if bound is None or bound.reference() is not tensor or not reader or not bound.changed_at:
            return
        read = names_read(statement_of(reader[0]))
        later = bound.names[bound.changed_as]
        for name, (clock, stack) in bound.names.items():
            if name == bound.changed_as or name not in read or clock > later[0]:
                continue
            if not stack or not later[1] or stack[0].code is not reader[0].code:
                continue
            if later[1][0].code is stack[0].code:
                # In one function a second name may be meant as one; side by side the two are meant to differ.
                differs = bound.changed_as in read
            else:
                differs = self._result_was_used(bound, stack)
            if differs:
                self._report_read(name, bound, reader)
                return

    def _result_was_used(self, bound: _Bound, outer: Stack) -> bool:
        """A function that changes its argument and whose result is taken for a new value."""
        call = next((key for key in bound.changed_at if key.code is outer[0].code), None)
        statement = statement_of(call) if call is not None else None
        return statement is not None and not isinstance(statement, ast.Expr) and not feeds_itself(statement)

    def _report_read(self, name: str, bound: _Bound, reader: Stack) -> None:
        place = place_of(bound.changed_at[0])
        message = f"`{text_of(place)}` changes `{name}` too: `{bound.changed_as}` is another name for it, not a copy"
        steps = (
            *step_at("made", f"`{bound.changed_as}` is bound here", bound.names[bound.changed_as][1]),
            *step_at("read", f"`{name}` is read here with the new value", reader),
        )
        self.ledger.add(Fault("GS107", message, place, steps, "warning", {"name": name}))
        self.changed.pop(id(bound.reference()), None)

    def _names_of(self, tensor: torch.Tensor) -> dict[str, tuple[int, Stack]]:
        bound = self._bound.get(id(tensor))
        return bound.names if bound is not None and bound.reference() is tensor else {}

    @quietly
    def compared(self, left: Any, right: Any, reader: Stack) -> None:
        """A function measures the difference of two tensors: nonsense when both are one and the same."""
        if not isinstance(left, torch.Tensor) or not isinstance(right, torch.Tensor):
            return
        if left is not right:
            if (
                left.shape != right.shape
                or left.layout is not torch.strided
                or right.layout is not torch.strided
            ):
                return
            key = storage_key(left)
            if not key or key != storage_key(right) or geometry_of(left) != geometry_of(right):
                return
        names = {**self._names_of(right), **self._names_of(left)}
        if not names or (left is right and len(names) < 2):
            return
        writes = self.log.writes_to(left) or ()
        for name, (clock, stack) in sorted(names.items(), key=lambda item: item[1][0]):
            since = [write for write in writes if write.clock > clock and write.stack]
            if since and stack:
                self._report_same(name, stack, since[0], reader)
                return

    def _report_same(self, name: str, made: Stack, write: Write, reader: Stack) -> None:
        is_step = write.by_optimizer or write.to_leaf
        place = place_of(made[0] if is_step else write.stack[0])
        message = f"`{name}` is another name for the tensor that `{text_of(place_of(write.stack[0]))}` changes, not a copy"
        steps = (
            *step_at("made", f"`{name}` is bound here", made),
            *step_at("written", f"changed here by `{operator_label(write.name)}`", write.stack),
            *step_at("read", "the tensor is compared with itself here", reader),
        )
        self.ledger.add(Fault("GS107", message, place, steps, "warning", {"name": name}))

    @quietly
    def stored_view(self, target: Any, value: Any, writer: Stack) -> None:
        """`x[i] = v` with a view `v` of the same tensor, overwritten since it was taken."""
        if (
            not isinstance(target, torch.Tensor)
            or not isinstance(value, torch.Tensor)
            or not value._is_view()
        ):
            return
        key = storage_key(value)
        if not key or key != storage_key(target):
            return
        here = geometry_of(value)
        for name, (clock, stack) in self._names_of(value).items():
            for write in self.log.writes_to(value) or ():
                if (
                    write.clock > clock
                    and write.stack
                    and write.geometry is not None
                    and overlaps(write.geometry, here)
                ):
                    place = place_of(writer[0]) if writer else place_of(write.stack[0])
                    message = f"`{name}` is a view that `{text_of(place_of(write.stack[0]))}` has overwritten, not a copy"
                    steps = (
                        *step_at("made", "the view is taken here", stack),
                        *step_at("written", "its elements are overwritten here", write.stack),
                        *step_at("read", "and read here with the new values", writer),
                    )
                    self.ledger.add(Fault("GS107", message, place, steps, "warning", {"name": name}))
                    return

    @quietly
    def changed_list(self, name: str, values: Any, stack: Stack) -> None:
        """`items[i] += x` on a list whose entries are one tensor."""
        if len(values) > 1000:
            return
        seen: set[int] = set()
        for item in values:
            if not isinstance(item, torch.Tensor):
                return
            if id(item) in seen:
                count = self._repeated[id(values)] = self._repeated.get(id(values), 0) + 1
                if count == 2 and stack:
                    place = place_of(stack[0])
                    message = f"`{text_of(place)}` changes every entry of `{name}`: they are one and the same tensor"
                    self.ledger.add(Fault("GS107", message, place, (), "warning", {"entries": len(values)}))
                return
            seen.add(id(item))

    # NumPy.

    @quietly
    def expose(self, tensor: torch.Tensor, stack: Stack) -> None:
        """A tensor hands its memory to NumPy; what it holds now is remembered, for writes that nobody sees."""
        self.share(tensor)
        if tensor.layout is torch.strided and tensor.numel() * tensor.element_size() <= _LARGEST_EXPOSED:
            with untracked():
                self.log.note_exposure(tensor, stack, Imprint(geometry_of(tensor), checksum_of(tensor)))

    @quietly
    def share(self, tensor: torch.Tensor) -> None:
        """NumPy and torch now see the same memory."""
        key = storage_key(tensor) if tensor.layout is torch.strided and tensor.device.type == "cpu" else 0
        if not key or type(tensor).__name__ == "FakeTensor":
            return
        storage = tensor.untyped_storage()
        start = storage.data_ptr()
        if start:
            self._shared[key] = _Shared(
                StorageWeakRef(storage), start, start + storage.nbytes(), tensor.element_size()
            )

    def is_shared(self, array: Any) -> bool:
        """Whether this array lies in memory that a tensor has, too."""
        if not self._shared:
            return False
        address = array.__array_interface__["data"][0]
        return any(shared.start <= address < shared.end for shared in self._shared.values())

    @quietly
    def array_written(self, array: Any, stack: Stack) -> None:
        """A statement of the user changed a NumPy array in place."""
        if not self._shared:
            return
        interface = getattr(array, "__array_interface__", None)
        if not isinstance(interface, dict):
            return
        address = interface["data"][0]
        for key, shared in list(self._shared.items()):
            if shared.reference.expired():
                del self._shared[key]
            elif shared.start <= address < shared.end:
                self.log.clock += 1
                size = shared.item_size
                whole = Geometry(0, ((shared.end - shared.start) // size,), (1,), size)
                write = Write(self.log.clock, NUMPY, stack, 0, whole, "", False)
                self.log.note_write_to(key, shared.reference, write)

    @quietly
    def called(self, owner: Any, method: str, stack: Stack) -> None:
        """A method was called as a statement; some of NumPy's change the array."""
        if method in _ARRAY_METHODS and self._shared:
            self.array_written(owner, stack)
