"""The quick recorder: a function mode that logs user lines and in-place calls, and nothing else.

It runs above autograd, where one call of the API is one event, so it costs a fraction of a dispatch mode.  Writes are
recognised by name (`add_`, `out=`, `inplace=True`, foreach) and optimizer steps are noted as a whole.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradsight.agent.graph import geometry_of
from gradsight.agent.oplog import Operation, OpLog, Write, next_number
from gradsight.agent.recorder import Situation
from gradsight.agent.sites import Stack, capture

_PLAIN = 0
_FIRST = 1
_OPTION = 2
_NOT_WRITES = frozenset(
    ("requires_grad_", "detach_", "share_memory_", "retain_grad_", "rename_", "is_shared_")
)


class FastRecorder(TorchFunctionMode):
    """Logs which user line made which nodes, and which line wrote where."""

    def __init__(self, log: OpLog, situation: Situation) -> None:
        super().__init__()
        self.log = log
        self.situation = situation
        self._kinds: dict[Any, tuple[int, int]] = {}
        self._versions: list[tuple[torch.Tensor, int]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kind = self._kinds.get(func)
        if kind is None:
            kind = self._kinds[func] = _kind_of(func)
        if kind[0] != _PLAIN or (kwargs and ("out" in kwargs or kwargs.get("inplace"))):
            if not self.situation.library_step:
                self._note_writes(kind, args, kwargs or {}, getattr(func, "__name__", "write"))
        before = next_number()
        result = func(*args, **kwargs) if kwargs else func(*args)
        after = next_number()
        if after != before:
            log = self.log
            log.clock += 1
            log.track().add(after, Operation(log.clock, getattr(func, "__name__", "op"), capture(2, 3)))
        return result

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Inside a call that this mode handles the mode is off; a backward runs user hooks, so it comes on again."""
        with self:
            yield

    def _note_writes(self, kind: tuple[int, int], args: Any, kwargs: dict[str, Any], name: str) -> None:
        if kind[0] == _OPTION and "inplace" not in kwargs:
            if not (len(args) > kind[1] and args[kind[1]] is True):
                return
        target = kwargs["out"] if "out" in kwargs else args[0] if args else next(iter(kwargs.values()), None)
        stack = capture(3, 4)
        self.log.clock += 1
        for tensor in target if isinstance(target, (list, tuple)) else (target,):
            if (
                isinstance(tensor, torch.Tensor)
                and tensor.layout is torch.strided
                and not tensor.is_inference()
            ):
                to_leaf = tensor.is_leaf and tensor.requires_grad
                self.log.note_write(
                    tensor,
                    Write(self.log.clock, name, stack, tensor._version, geometry_of(tensor), "", to_leaf),
                )

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
                    Write(self.log.clock, name, stack, version, None, "", True, by_optimizer=True),
                )
        self._versions = []


def _kind_of(func: Any) -> tuple[int, int]:
    """How a function of the API can write: to its first argument, by an option, or not at all."""
    name = getattr(func, "__name__", "")
    if name == "__setitem__" or (
        name.startswith("__i")
        and name.endswith("__")
        and name not in ("__index__", "__invert__", "__int__", "__iter__")
    ):
        return (_FIRST, 0)
    if name == "__set__" and getattr(getattr(func, "__self__", None), "__name__", "") == "data":
        return (_FIRST, 0)
    if name.endswith("_") and not name.endswith("__") and name not in _NOT_WRITES:
        return (_FIRST, 0)
    if hasattr(func, "__code__"):
        try:
            names = list(inspect.signature(func).parameters)
        except (TypeError, ValueError):
            return (_PLAIN, 0)
        if "inplace" in names:
            return (_OPTION, names.index("inplace"))
    return (_PLAIN, 0)
