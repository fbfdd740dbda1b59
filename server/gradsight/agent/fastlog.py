"""The quick recorder: a function mode that logs user lines and in-place calls, and nothing else.

It runs above autograd, where one call of the API is one event, so it costs a fraction of a dispatch mode.  Writes are
recognised by name (`add_`, `out=`, `inplace=True`, foreach) and optimizer steps are noted as a whole.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from gradsight.agent.gradwatch import GradWatch, NoneRead
from gradsight.agent.graph import geometry_of
from gradsight.agent.light_cuts import LightCuts
from gradsight.agent.numbering import IS_NATIVE, give_numbers, next_number
from gradsight.agent.oplog import LoggedWrite, Operation, OpLog
from gradsight.agent.recorder import Situation
from gradsight.agent.sites import Stack, capture, is_user_file

try:
    from torch.compiler import is_dynamo_compiling
except ImportError:

    def is_dynamo_compiling() -> bool:
        """Whether torch's compiler reads this code; old releases do not say."""
        return False


Made = Callable[[Any, Any, Any, Any, int, Stack], None]
"""Is told of a call that made nodes: the function, its arguments, its result, the number of the last node, the line."""
_PLAIN, _WRITES, _PYTHON, _GRADIENT = range(4)
_NOT_WRITES = frozenset(("requires_grad_", "detach_", "share_memory_", "rename_"))
_NOT_IN_PLACE = frozenset(("__index__", "__invert__", "__int__", "__iter__"))


class FastRecorder(TorchFunctionMode):
    """Logs which user line made which nodes, and which line wrote where."""

    def __init__(
        self, log: OpLog, situation: Situation, grads: GradWatch, builder: Callable[[], Stack]
    ) -> None:
        super().__init__()
        self.log = log
        self.situation = situation
        self.grads = grads
        self.builder = builder
        self.is_listening = True
        self.cuts: LightCuts | None = None
        self.on_error: Callable[[BaseException], None] | None = None
        self.on_made: Made | None = None
        self._kinds: dict[Any, int] = {torch.Tensor.grad.__get__: _GRADIENT}
        self._versions: list[tuple[torch.Tensor, int]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # The compiler traces through a mode: what it compiles runs without us, and must not be cut up by our notes.
        if is_dynamo_compiling() or not self.is_listening:
            return func(*args, **kwargs) if kwargs else func(*args)
        kind = self._kinds.get(func)
        if kind is None:
            kind = self._kinds[func] = _kind_of(func)
        seen: list[tuple[torch.Tensor, int]] = []
        if kind == _WRITES or (kwargs and "out" in kwargs):
            self._note_writes(args, kwargs or {}, getattr(func, "__name__", "write"))
        elif kind == _PYTHON:
            # A function written in Python may write to its arguments inside, where this mode does not listen.
            seen = [(item, item._version) for item in args if _has_version(item)]
        elif kind == _GRADIENT:
            return self._gradient(func, args)
        before = next_number()
        try:
            result = func(*args, **kwargs) if kwargs else func(*args)
        except Exception as error:
            if self.on_error is not None:
                self.on_error(error)
            raise
        if not IS_NATIVE:
            give_numbers(result, args[:1])
        after = next_number()
        if after != before:
            log = self.log
            log.clock += 1
            made = (log.clock, getattr(func, "__name__", "op"), capture(2, 3))
            # Past the constructor, which is a function of Python and half of the price of a call.
            log.track().add(after, tuple.__new__(Operation, made))
            if self.on_made is not None:
                self.on_made(func, args, kwargs, result, after - 1, made[2])
        if self.cuts is not None and (after == before or isinstance(result, tuple)):
            self.cuts.note(func, args, result, _stack_of_call)
        for tensor, version in seen:
            if tensor._version != version:
                self._note(tensor, version, getattr(func, "__name__", "write"), capture(2, 4))
        return result

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Inside a call that this mode handles the mode is off; a backward runs user hooks, so it comes on again."""
        with self:
            yield

    def _note_writes(self, args: Any, kwargs: dict[str, Any], name: str) -> None:
        target = kwargs["out"] if "out" in kwargs else args[0] if args else next(iter(kwargs.values()), None)
        stack = capture(3, 4)
        self.log.clock += 1
        for tensor in target if isinstance(target, (list, tuple)) else (target,):
            if _has_version(tensor):
                self._note(tensor, tensor._version, name, stack)

    def _note(self, tensor: torch.Tensor, version: int, name: str, stack: Stack) -> None:
        built = self.builder()
        if built:
            stack = (*built[:1], *stack)
        self.log.clock += 1
        to_leaf = tensor.is_leaf and tensor.requires_grad
        self.log.note_write(
            tensor, LoggedWrite(self.log.clock, name, stack, version, geometry_of(tensor), "", to_leaf)
        )

    def _gradient(self, func: Any, args: Any) -> Any:
        grad = func(*args)
        owner = args[0]
        if grad is None and is_user_file(sys._getframe(2).f_code.co_filename):
            node = owner.grad_fn if owner.requires_grad else None
            read = NoneRead(capture(3), owner.is_leaf, owner.retains_grad, id(owner), node, 1)
            self.grads.none_reads.append(read)
            del self.grads.none_reads[:-20]
        return grad

    def before_step(self, optimizer: Any) -> None:
        """Remembers the versions of the parameters that a library step is going to write."""
        self._versions = [
            (parameter, parameter._version)
            for group in optimizer.param_groups
            for parameter in group["params"]
            if isinstance(parameter, torch.Tensor) and parameter.grad is not None
        ]

    def after_step(self, optimizer: Any, stack: Stack) -> None:
        """Notes the step as one write per parameter."""
        self.log.clock += 1
        name = f"{type(optimizer).__name__}.step"
        for parameter, version in self._versions:
            if parameter.layout is torch.strided:
                self.log.note_write(
                    parameter,
                    LoggedWrite(self.log.clock, name, stack, version, None, "", True, by_optimizer=True),
                )
        self._versions = []


def _stack_of_call() -> Stack:
    return capture(3)


def _has_version(item: Any) -> bool:
    if not isinstance(item, torch.Tensor) or item.layout is not torch.strided or is_lazy(item):
        return False
    return not item.is_inference()


def _kind_of(func: Any) -> int:
    """How a function of the API can write: to its first argument, inside its Python body, or not at all."""
    name = getattr(func, "__name__", "")
    if name == "__setitem__" or (
        name.startswith("__i") and name.endswith("__") and name not in _NOT_IN_PLACE
    ):
        return _WRITES
    if name == "__set__" and getattr(getattr(func, "__self__", None), "__name__", "") == "data":
        return _WRITES
    if name.endswith("_") and not name.endswith("__") and name not in _NOT_WRITES:
        return _WRITES
    return _PYTHON if hasattr(func, "__code__") and name not in ("backward", "grad") else _PLAIN
