"""The API surface: a function mode that sees what the user asks of torch by name.

Below autograd a `.data`, an `item()` or a `requires_grad_()` leaves no trace of its own; here each has its name.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, cast

import torch
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from gradsight.agent.aliases import Aliases
from gradsight.agent.branch_inputs import BranchInputs
from gradsight.agent.faults import quietly
from gradsight.agent.gradwatch import GradWatch, NoneRead
from gradsight.agent.graph import untracked
from gradsight.agent.numbering import IS_NATIVE, give_numbers, next_number, number_of
from gradsight.agent.numbers import MATH_CODE
from gradsight.agent.oplog import LoggedWrite, Operation, OpLog
from gradsight.agent.origins import Origins
from gradsight.agent.recorder import Situation
from gradsight.agent.shadow import Shadow
from gradsight.agent.sites import Stack, capture, is_user_file, library_frames, same_line

_MOST_ASKED = 10_000
_Handler = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


class ApiHooks(TorchFunctionMode):
    """Calls by name: escapes from the graph, reads of `.grad`, changes of `requires_grad`."""

    def __init__(
        self, log: OpLog, situation: Situation, shadow: Shadow, origins: Origins, grads: GradWatch
    ) -> None:
        super().__init__()
        self.log = log
        self.situation = situation
        self.shadow = shadow
        self.origins = origins
        self.grads = grads
        self.ledger = grads.ledger
        self.backwards = 0
        self.grad_switched_off: Stack = ()
        self.frozen_at: dict[int, Stack] = {}
        self.on_grad_set: Callable[[torch.Tensor, Any], None] | None = None
        self.aliases: Aliases | None = None
        self.branches: BranchInputs | None = None
        self.on_flag: Callable[[torch.Tensor, Stack], None] | None = None
        self.on_gradient_use: Callable[[Stack], None] | None = None
        self.on_gradient_read: Callable[[torch.Tensor], None] | None = None
        self.on_copy: Callable[[torch.Tensor, Stack], None] | None = None
        self.on_shared: Callable[[torch.Tensor, Stack], None] | None = None
        self.follows_library: Callable[[], bool] | None = None
        self.on_collection: Callable[[Any, Stack], None] | None = None
        self.has_trained: Callable[[torch.Tensor], bool] = lambda _: False
        self.suspects: dict[int, Any] = {}
        self.on_suspect: Callable[[torch.Tensor, Stack], None] | None = None
        self.on_error: Callable[[Exception], None] = lambda _: None
        self._asked: dict[int, tuple[weakref.ref[torch.Tensor], int, Stack]] = {}
        self._left: tuple[int, int] = (0, 0)
        self._table = self._handlers()

    def _handlers(self) -> dict[Any, _Handler]:
        tensor: Any = torch.Tensor
        table: dict[Any, _Handler] = {
            tensor.grad.__get__: self._get_grad,
            tensor.grad.__set__: self._set_grad,
            tensor.data.__get__: self._get_data,
            tensor.data.__set__: self._set_data,
            tensor.detach: self._detach,
            tensor.requires_grad_: self._require,
            tensor.requires_grad.__set__: self._require,
            tensor.item: self._escape,
            tensor.__float__: self._escape,
            tensor.tolist: self._escape,
            tensor.numpy: self._escape,
            tensor.__array__: self._escape,
            tensor.__repr__: self._show,
            tensor.__format__: self._show,
            tensor.__deepcopy__: self._copy,
            torch.tensor: self._construct,
            torch.as_tensor: self._construct,
            torch.asarray: self._construct,
            tensor.new_tensor: self._construct,
            torch._C._set_grad_enabled: self._switch_grad,
        }
        for join in (torch.stack, torch.cat, torch.concat, torch.vstack, torch.hstack):
            table[join] = self._join
        for getter in (
            tensor.shape,
            tensor.requires_grad,
            tensor.is_leaf,
            tensor.grad_fn,
            tensor.dtype,
            tensor.device,
        ):
            table[getter.__get__] = _plainly
        return table

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        situation = self.situation
        situation.call = func
        situation.stack = None
        handler = self._table.get(func)
        try:
            if handler is not None:
                result = handler(func, args, kwargs or {})
            else:
                self._notice(func, args)
                result = func(*args, **kwargs) if kwargs else func(*args)
        except Exception as error:
            self.on_error(error)
            raise
        if not IS_NATIVE and give_numbers(result, args[:1]):
            self.log.clock += 1
            made = Operation(self.log.clock, getattr(func, "__name__", "op"), capture(2))
            self.log.track().add(next_number(), made)
        return result

    def listen(self, func: Any, heard: Callable[[tuple[Any, ...], dict[str, Any]], None]) -> None:
        """Calls `heard` with the arguments before this function of the API runs."""
        before = self._table.get(func)

        def handle(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            self._notice(function, args, depth=5)
            heard(args, kwargs)
            return before(function, args, kwargs) if before is not None else function(*args, **kwargs)

        self._table[func] = handle

    def _notice(self, func: Any, args: tuple[Any, ...], depth: int = 4) -> None:
        """Tells those who watch single tensors that a function gets them."""
        if self.grads.watched:
            self._notice_use(func, args, depth)
        if self.situation.unused:
            self.situation.unused.difference_update(map(id, args))
        if self.aliases is not None and self.aliases.changed:
            self._notice_alias(args)
        if self.branches is not None and self.branches.watched:
            for value in args:
                if id(value) in self.branches.watched:
                    self.branches.used(value, getattr(func, "__name__", ""), capture(depth - 1))
        if self.suspects and self.on_suspect is not None:
            for value in args:
                if id(value) in self.suspects and not _is_in_place(getattr(func, "__name__", "")):
                    self.on_suspect(value, capture(depth - 1))

    @quietly
    def _notice_alias(self, args: tuple[Any, ...]) -> None:
        assert self.aliases is not None
        for value in args:
            if isinstance(value, torch.Tensor) and id(value) in self.aliases.changed:
                self.aliases.used(value, capture(4))

    @quietly
    def _notice_use(self, func: Any, args: tuple[Any, ...], depth: int = 3) -> None:
        """A function gets these arguments; `depth` frames above this one is who called it."""
        watched = self.grads.watched
        directly = _is_users_call(sys._getframe(depth))
        if self.on_gradient_use is not None and any(
            id(item) in watched
            for value in args
            for item in (value if isinstance(value, (list, tuple)) else (value,))
        ):
            self.on_gradient_use(capture(4))
        for value in args:
            if isinstance(value, torch.Tensor):
                if id(value) in watched:
                    name = getattr(func, "__name__", "")
                    in_place = value is args[0] and name.endswith("_") and not name.endswith("__")
                    self.grads.used(value, capture(4), in_place or name == "__setitem__", directly)
            elif isinstance(value, (list, tuple)):
                for item in value:
                    if isinstance(item, torch.Tensor) and id(item) in watched:
                        name = getattr(func, "__name__", "")
                        self.grads.used(item, capture(4), name.endswith("_"), directly)

    def _get_grad(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        grad = func(*args)
        owner = args[0]
        caller = sys._getframe(2)
        directly = is_user_file(caller.f_code.co_filename)
        if directly and self.on_gradient_read is not None and owner.is_leaf:
            self.on_gradient_read(owner)
        if grad is not None:
            always = self.follows_library is not None and self.follows_library()
            self.grads.fetched(grad, capture(3), directly, always)
        elif directly:
            node = owner.grad_fn if owner.requires_grad else None
            self.grads.none_reads.append(
                NoneRead(capture(3), owner.is_leaf, owner.retains_grad, id(owner), node, self.backwards)
            )
            del self.grads.none_reads[:-200]
            if owner.is_leaf and self.backwards:
                self.grads.none_read_ids.add(id(owner))
        return grad

    def _set_grad(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value = args[1] if len(args) > 1 else None
        # `p.grad += g` assigns the tensor that is there already.
        changes = value is None or args[0].grad is not value
        result = func(*args)
        if changes and self.on_grad_set is not None:
            self.on_grad_set(args[0], value)
        return result

    def _get_data(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.situation.alias_kind = "data"
        try:
            result = func(*args)
        finally:
            self.situation.alias_kind = "detach"
        self.shadow.name_alias(result)
        return result

    def _set_data(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        owner = args[0]
        stack = capture(3)
        self.log.clock += 1
        if owner.layout is not torch.strided or is_lazy(owner):
            return func(*args)
        to_leaf = owner.is_leaf and owner.requires_grad
        write = LoggedWrite(self.log.clock, "data=", stack, owner._version, None, "", to_leaf)
        self.log.note_write(owner, write)
        with untracked():
            before = owner.detach()
        result = func(*args)
        self._note_replaced(owner, before, write)
        return result

    @quietly
    def _note_replaced(self, owner: torch.Tensor, before: torch.Tensor, write: LoggedWrite) -> None:
        with untracked():
            if not _has_values_of(owner, before):
                self.log.note_replaced(owner, write)

    def _detach(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.grads.watched:
            self._notice_use(func, args)
        result = func(*args)
        self.shadow.name_alias(result)
        return result

    def _require(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        owner = args[0]
        before = owner.requires_grad
        result = func(*args, **kwargs)
        if before != owner.requires_grad and self.on_flag is not None:
            self.on_flag(owner, capture(3))
        if not before and owner.requires_grad and owner.is_leaf:
            if len(self._asked) < _MOST_ASKED:
                self._asked[id(owner)] = (weakref.ref(owner), self.log.clock, capture(3))
            if is_user_file(sys._getframe(2).f_code.co_filename):
                self.false_leaf(owner, "requires_grad", capture(3))
        elif before and not owner.requires_grad:
            self.frozen_at[id(owner)] = capture(3)
        return result

    def asked_at(self, tensor: torch.Tensor) -> tuple[int, Stack] | None:
        """When and where a leaf that existed before began to ask for a gradient."""
        asked = self._asked.get(id(tensor))
        return asked[1:] if asked is not None and asked[0]() is tensor else None

    @quietly
    def false_leaf(self, tensor: torch.Tensor, kind: str, stack: Stack) -> None:
        """A tensor that was computed from leaves starts a graph of its own."""
        deps, _, events = self.shadow.read(tensor)
        leaf = self.shadow.leaf(tensor)
        if leaf is None:
            return
        origin = leaf.made_from or deps & ~(1 << leaf.bit)
        if not origin:
            return
        event = self.shadow.event(kind, kind, stack, origin)
        event.inner |= events
        event.live |= 1 << leaf.bit
        self.shadow.write(tensor, 0, 1 << event.bit, 0)

    def _escape(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        owner = args[0]
        if self.grads.watched:
            self._notice_use(func, args)
        deps, _, events = self.shadow.read(owner)
        self.situation.alias_kind = "ignore"
        try:
            result = func(*args, **kwargs)
        finally:
            self.situation.alias_kind = "detach"
        name = func.__name__.strip("_")
        if name in ("numpy", "array") and self.on_shared is not None:
            self.on_shared(owner, capture(3))
        if not deps:
            return result
        if owner.requires_grad or not events or self._cut_on_this_line(events):
            kind = "numpy" if name in ("numpy", "array") else "number"
            if name == "float" and owner.requires_grad and self._is_asked_by_math(owner):
                kind = "implicit"
            cut = self.shadow.event(kind, name, capture(3), deps)
            if owner.grad_fn is not None:
                cut.source_number = number_of(owner.grad_fn)
            events |= 1 << cut.bit
        self._left = (self._left[0] | deps, self._left[1] | events)
        traced = self.origins.traced(result, (deps, events))
        # `float()` and `np.asarray()` insist on the exact type; their value is remembered all the same.
        return traced if name in ("item", "tolist", "numpy") else result

    def _is_asked_by_math(self, tensor: torch.Tensor) -> bool:
        """Whether a function of `math` made a number of the tensor it was given, without anybody saying so.

        A loss that has been through its backward is a number for whoever comes after.
        """
        if not torch.is_grad_enabled() or self.has_trained(tensor):
            return False
        return any(frame.f_code is MATH_CODE for frame in library_frames())

    def _cut_on_this_line(self, events: int) -> bool:
        """`x.detach().numpy()` is one step out of the graph, not two."""
        here = capture(4)
        return any(same_line(event.stack, here) for event in self.shadow.events_in(events))

    def leaving(self, work: Callable[[], Any]) -> tuple[Any, tuple[int, int]]:
        """The result of some work outside of torch, and the origin of the tensors that it took out of the graph."""
        self._left = (0, 0)
        result = work()
        return result, self._left

    def traced_float(self, value: Any) -> float:
        """Stands for `float(value)` in the user's code: the number keeps its origin through arithmetic."""
        number = float(value)
        if self.origins and not isinstance(value, (int, str)):
            is_tensor = isinstance(value, torch.Tensor)
            origin = self.origins.of(number) if is_tensor else self.origins.carried_by((value,))
            if origin[0]:
                return cast(float, self.origins.traced(number, origin))
        return number

    def _show(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.log.touches is not None:
            self.log.clock += 1
            self.log.touches.note(args[0], capture(3), self.log.clock, False)
        if self.grads.watched:
            self._notice_use(func, args)
        self.situation.quiet += 1
        try:
            return func(*args, **kwargs)
        finally:
            self.situation.quiet -= 1

    def _copy(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`deepcopy`: a new leaf with a life of its own."""
        self.situation.quiet += 1
        try:
            result = func(*args, **kwargs)
        finally:
            self.situation.quiet -= 1
        if self.on_copy is not None and isinstance(result, torch.Tensor):
            self.on_copy(result, capture(3))
        return result

    def _construct(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.situation.alias_kind = "ignore"
        try:
            result = func(*args, **kwargs)
        finally:
            self.situation.alias_kind = "detach"
        data = (
            args[1]
            if func is torch.Tensor.new_tensor and len(args) > 1
            else args[0]
            if args
            else kwargs.get("data")
        )
        if isinstance(result, torch.Tensor) and result is not data:
            shares = func in (torch.as_tensor, torch.asarray) and isinstance(data, torch.Tensor)
            deps, events = (0, 0) if shares else self._sources(data, func, capture(3))
            if deps:
                if result.requires_grad and not isinstance(data, torch.Tensor):
                    leaf = self.shadow.leaf(result)
                    if leaf is not None:
                        leaf.made_from |= deps
                self.shadow.write(result, deps, events, 0)
        return result

    def _sources(self, data: Any, func: Any, stack: Stack) -> tuple[int, int]:
        """What the data of a constructor depends on; a tensor in it is cut here."""
        deps = events = 0
        if isinstance(data, torch.Tensor):
            more, _, passed = self.shadow.read(data)
            if more:
                deps |= more
                events |= passed
                if data.requires_grad:
                    events |= 1 << self.shadow.event("tensor", f"torch.{func.__name__}", stack, more).bit
            return deps, events
        if isinstance(data, (list, tuple)):
            for item in data[:20_000]:
                more, passed = self._sources(item, func, stack)
                deps |= more
                events |= passed
            return deps, events
        return self.origins.of(data)

    def _join(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.grads.watched:
            self._notice_use(func, args)
        if self.on_collection is not None and args:
            self.on_collection(args[0], capture(3))
        return func(*args, **kwargs)

    def hear_grad_mode(self) -> None:
        """Stands before `set_grad_enabled` where torch does not tell a mode of it."""
        switch: Any = torch.set_grad_enabled
        original = switch.__init__
        surface = self

        def begin(self: Any, mode: bool) -> None:
            original(self, mode)
            if not mode:
                surface.grad_switched_off = capture(2)

        switch.__init__ = begin

    def _switch_grad(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if args and not args[0]:
            self.grad_switched_off = capture(3)
        return func(*args)


def _is_users_call(frame: FrameType) -> bool:
    """Whether the user's own code called this function of the API.

    A function that torch implements in Python reaches the mode through two more frames: torch's dispatcher, itself.
    """
    if (
        frame.f_code.co_name == "handle_torch_function"
        and frame.f_back is not None
        and frame.f_back.f_back is not None
    ):
        frame = frame.f_back.f_back
    return is_user_file(frame.f_code.co_filename)


def _is_in_place(name: str) -> bool:
    return name == "__setitem__" or name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))


def _plainly(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return func(*args)


def _has_values_of(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether memory was replaced by a copy of it, as a move to another device does."""
    if tensor.shape != other.shape or tensor.device != other.device or tensor.is_meta:
        return bool(tensor.shape == other.shape)
    return bool(torch.equal(tensor.detach(), other.to(tensor.dtype)))
