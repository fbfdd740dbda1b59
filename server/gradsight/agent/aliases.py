"""Two names for one tensor: differences with itself, swapped views, repeated list entries, NumPy arrays that share memory."""

from __future__ import annotations

import ast
import math
import weakref
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from gradsight.agent.faults import Fault, Kind, Ledger, quietly, step_at
from gradsight.agent.graph import (
    Geometry,
    Imprint,
    checksum_of,
    geometry_of,
    overlaps,
    storage_key,
    untracked,
)
from gradsight.agent.oplog import NUMPY, LoggedWrite, OpLog, operator_label
from gradsight.agent.sites import (
    FrameKey,
    Stack,
    feeds_itself,
    names_read,
    place_of,
    same_line,
    statement_of,
    text_of,
)

_MOST_NAMES = 6000
_MOST_HELD = 64
_MOST_HANDED_OUT = 4096
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
        self._means: dict[tuple[Any, str], int] = {}
        """Which tensor a name of a function stands for now, by the identity of the tensor."""
        self._handed_out: dict[tuple[int, tuple[int, ...]], int] = {}
        """The checksums of arrays when their tensors gave them away, or were last seen to change: by address and shape."""
        self._shared: dict[int, _Shared] = {}
        self._repeated: dict[int, int] = {}
        self._held: dict[int, tuple[weakref.ref[torch.Tensor], str, int, Stack]] = {}
        # The code, the instruction and the beginning of the stores of the statement that stored last.
        self._stores: tuple[Any, int, int] = (None, 0, 0)
        self.changed: dict[int, _Bound] = {}
        self.is_gradient: Callable[[torch.Tensor], bool] = lambda _: False
        self.on_memory_written: Callable[[int, Geometry, Stack], None] | None = None

    # Names.

    @quietly
    def bind(self, name: str, tensor: torch.Tensor, stack: Stack, changed: bool) -> None:
        """A statement of the user bound this name, or changed the tensor under it."""
        if stack:
            self._means[stack[0].code, name] = id(tensor)
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
            if self._means.get((stack[0].code, name)) != id(tensor):
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
        message = (
            f"`{text_of(place)}` changes `{name}` too: `{bound.changed_as}` is the same tensor, not a copy"
        )
        steps = (
            *step_at("made", f"`{bound.changed_as}` is bound here", bound.names[bound.changed_as][1]),
            *step_at("read", f"`{name}` is read here with the new value", reader),
        )
        self.ledger.add(Fault("alias-read-after-write", message, place, steps, "warning", {"name": name}))
        self.changed.pop(id(bound.reference()), None)

    def names_of(self, tensor: torch.Tensor) -> dict[str, tuple[int, Stack]]:
        """The names that were bound to this very tensor: when and where."""
        bound = self._bound.get(id(tensor))
        return bound.names if bound is not None and bound.reference() is tensor else {}

    @quietly
    def hold(self, name: str, values: Any, stack: Stack) -> None:
        """A statement bound a name to a list or a dictionary: its tensors can be reached by that name."""
        entries = list(values.values() if isinstance(values, dict) else values)
        if not stack or len(entries) > _MOST_HELD:
            return
        if len(self._held) > _MOST_NAMES:
            self._held = {key: item for key, item in self._held.items() if item[0]() is not None}
        for entry in entries:
            if isinstance(entry, torch.Tensor):
                self._held[id(entry)] = (weakref.ref(entry), name, self.log.clock, stack)

    def held_since(self, tensor: torch.Tensor) -> tuple[int, Stack] | None:
        """When and where the collection that holds this very tensor was bound."""
        held = self._held.get(id(tensor))
        return held[2:] if held is not None and held[0]() is tensor else None

    def bound_at(self, tensor: torch.Tensor) -> Stack:
        """Where this very tensor first got a name."""
        return min(self.names_of(tensor).values(), key=lambda bound: bound[0], default=(0, ()))[1]

    def _names_of_whole(self, tensor: torch.Tensor) -> dict[str, tuple[int, Stack]]:
        """The names of a tensor, or of the one that it shows in another shape."""
        own = self.names_of(tensor)
        held = self._held.get(id(tensor))
        if held is not None and held[0]() is tensor:
            own = {**own, held[1]: held[2:]}
        base = tensor._base if not own and tensor._is_view() else None
        return self.names_of(base) if base is not None and base.numel() == tensor.numel() else own

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
            if key and key != storage_key(right) and _is_one_memory(left, right):
                self._compared_with_array(left, right, reader)
                return
            if not key or key != storage_key(right) or geometry_of(left) != geometry_of(right):
                return
        names = {**self._names_of_whole(right), **self._names_of_whole(left)}
        if not names or (left is right and len(names) < 2):
            return
        writes = self.log.writes_to(left) or ()
        for name, (clock, stack) in sorted(names.items(), key=lambda item: item[1][0]):
            since = [write for write in writes if write.clock > clock and write.stack]
            if since and stack:
                self._report_same(name, stack, since[0], reader, self.is_gradient(left))
                return

    def _compared_with_array(self, left: torch.Tensor, right: torch.Tensor, reader: Stack) -> None:
        """One of the two came back from NumPy, with the memory of the other."""
        for tensor in (left, right):
            taken = self.log.exposed(tensor)
            writes = self.log.writes_to(tensor) or ()
            since = [
                write
                for write in writes
                if taken is not None and write.clock > taken.clock and write.stack and write.name != NUMPY
            ]
            if taken is not None and taken.stack and since:
                self._report_same("the array", taken.stack, since[0], reader, False)
                return

    def _report_same(
        self, name: str, made: Stack, write: LoggedWrite, reader: Stack, is_gradient: bool
    ) -> None:
        # What an optimizer or a backward changes is theirs to change: to take it without a copy is the fault.
        is_theirs = is_gradient or write.by_optimizer or write.to_leaf
        place = place_of(made[0] if is_theirs else write.stack[0])
        shown = name if name.startswith("the ") else f"`{name}`"
        message = f"{shown} is another name for the tensor that `{text_of(place_of(write.stack[0]))}` changes, not a copy"
        steps = (
            *step_at("made", f"{shown} is bound here", made),
            *step_at("written", f"changed here by `{operator_label(write.name)}`", write.stack),
            *step_at("read", "the tensor is compared with itself here", reader),
        )
        kind: Kind = "grad-alias-overwritten" if is_gradient else "alias-read-after-write"
        self.ledger.add(Fault(kind, message, place, steps, "warning", {"name": name}))

    @quietly
    def stored_view(self, target: Any, value: Any, writer: Stack) -> None:
        """`x[i] = v` with a view `v` of the same tensor, overwritten since it was taken."""
        since = self._start_of_stores(writer)
        if (
            not isinstance(target, torch.Tensor)
            or not isinstance(value, torch.Tensor)
            or not value._is_view()
        ):
            return
        if since >= 0 and self._report_swap(value, since, writer):
            return
        key = storage_key(value)
        if not key or key != storage_key(target):
            return
        here = geometry_of(value)
        for name, (clock, stack) in self.names_of(value).items():
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
                    self.ledger.add(
                        Fault("alias-read-after-write", message, place, steps, "warning", {"name": name})
                    )
                    return

    def _start_of_stores(self, writer: Stack) -> int:
        """When the running `x[i], x[j] = …` began to store, -1 for other statements.

        Both sides of such a statement are made before the first store, and its stores lie in rising order in the code.
        """
        if not writer:
            return -1
        code, offset = writer[0]
        known, last, since = self._stores
        if known is not code or offset <= last or not same_line(writer, (FrameKey(code, last),)):
            since = self.log.clock
        self._stores = (code, offset, since)
        statement = statement_of(writer[0])
        is_swap = (
            isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], (ast.Tuple, ast.List))
            and isinstance(statement.value, (ast.Tuple, ast.List))
        )
        return since if is_swap else -1

    def _report_swap(self, value: torch.Tensor, since: int, writer: Stack) -> bool:
        """A view on the right side of a swap whose elements the same statement has overwritten already."""
        here = geometry_of(value)
        for write in self.log.writes_to(value) or ():
            if write.clock > since and write.geometry is not None and overlaps(write.geometry, here):
                place = place_of(write.stack[0]) if write.stack else place_of(writer[0])
                message = (
                    f"`{text_of(place)}` is overwritten before the same statement has read it: "
                    "the right side has views, not copies"
                )
                steps = (
                    *step_at("written", "overwritten first", write.stack),
                    *step_at("read", "then stored here with the new values", writer),
                )
                self.ledger.add(Fault("alias-read-after-write", message, place, steps, "warning", {}))
                return True
        return False

    @quietly
    def changed_entry(self, name: str, values: Any, stack: Stack) -> None:
        """`items[i] += x` on a list or a dictionary whose entries are one tensor."""
        entries = list(values.values() if isinstance(values, dict) else values)
        if not 1 < len(entries) <= 1000 or not isinstance(entries[0], torch.Tensor):
            return
        if any(item is not entries[0] for item in entries):
            return
        count = self._repeated[id(values)] = self._repeated.get(id(values), 0) + 1
        if count == 2 and stack:
            place = place_of(stack[0])
            message = f"`{text_of(place)}` changes every entry of `{name}`: they are one and the same tensor"
            self.ledger.add(
                Fault("alias-read-after-write", message, place, (), "warning", {"entries": len(entries)})
            )

    # NumPy.

    @quietly
    def expose(self, tensor: torch.Tensor, stack: Stack) -> None:
        """A tensor hands its memory to NumPy; what it holds now is remembered, for writes that nobody sees."""
        self.share(tensor)
        if tensor.layout is torch.strided and tensor.numel() * tensor.element_size() <= _LARGEST_EXPOSED:
            with untracked():
                checksum = checksum_of(tensor)
                self.log.note_exposure(tensor, stack, Imprint(geometry_of(tensor), checksum))
                if checksum:
                    if len(self._handed_out) > _MOST_HANDED_OUT:
                        self._handed_out.clear()
                    self._handed_out[(tensor.data_ptr(), tuple(tensor.shape))] = checksum

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
    def array_written(self, array: Any, stack: Stack, is_done: bool = False) -> None:
        """A statement of the user changed a NumPy array in place, or is about to do it."""
        if not self._shared:
            return
        interface = getattr(array, "__array_interface__", None)
        if not isinstance(interface, dict):
            return
        address = interface["data"][0]
        if is_done and self._is_as_handed_out(array, (address, tuple(interface["shape"]))):
            return
        for key, shared in list(self._shared.items()):
            if shared.reference.expired():
                del self._shared[key]
            elif shared.start <= address < shared.end:
                self.log.clock += 1
                size = shared.item_size
                whole = Geometry(0, ((shared.end - shared.start) // size,), (1,), size)
                write = LoggedWrite(self.log.clock, NUMPY, stack, 0, whole, "", False)
                self.log.note_write_to(key, shared.reference, write)
                if self.on_memory_written is not None:
                    self.on_memory_written(key, _geometry_of_array(interface, shared), stack)

    def _is_as_handed_out(self, array: Any, key: tuple[int, tuple[int, ...]]) -> bool:
        """Whether an array still has the elements that it had when its tensor gave it away: `a += 0`, `a *= 1`."""
        known = self._handed_out.get(key)
        if known is None:
            return False
        self._handed_out[key] = now = zlib.crc32(array.tobytes())
        return now == known

    @quietly
    def called(self, owner: Any, method: str, stack: Stack) -> None:
        """A method was called as a statement; some of NumPy's change the array."""
        if method in _ARRAY_METHODS and self._shared:
            self.array_written(owner, stack)


def _is_one_memory(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two storages are one and the same piece of memory, as after a way through NumPy."""
    try:
        return bool(left.data_ptr() == right.data_ptr() != 0 and left.stride() == right.stride())
    except RuntimeError:
        return False


def _geometry_of_array(interface: dict[str, Any], shared: _Shared) -> Geometry:
    """The elements of a shared storage that an array covers; the whole storage when its layout is another one."""
    size = shared.item_size
    shape: tuple[int, ...] = tuple(interface["shape"])
    if int(interface["typestr"][2:]) != size:
        return Geometry(0, ((shared.end - shared.start) // size,), (1,), size)
    strides = interface.get("strides")
    if strides is None:
        strides = tuple(size * math.prod(shape[at + 1 :]) for at in range(len(shape)))
    if any(stride < 0 for stride in strides):
        return Geometry(0, ((shared.end - shared.start) // size,), (1,), size)
    offset = (interface["data"][0] - shared.start) // size
    return Geometry(offset, shape, tuple(stride // size for stride in strides), size)
