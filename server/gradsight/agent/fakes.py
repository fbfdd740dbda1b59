"""Huge models without their memory: the run under FakeTensorMode, where shapes are real and values are not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from gradsight.agent.full_instruments import FullInstruments
from gradsight.agent.recorder import Situation


@contextlib.contextmanager
def imagined(instruments: FullInstruments) -> Iterator[None]:
    """Every tensor made inside this block has a shape, a dtype and a graph, and no values."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    note = instruments.ledger.note
    note("run without values: gradient norms, zero gradients, NaN and content changes cannot be seen")
    _replace_parameters_on_apply(instruments.situation)

    def assume(name: str, args: Any) -> tuple[bool, Any]:
        if name == "aten::_local_scalar_dense":
            note(
                "a value was asked for (`item()`, a branch on a tensor): it was assumed, and one path was taken"
            )
            tensor = args[0]
            if tensor.dtype is torch.bool:
                return True, True
            return True, 1.0 if tensor.is_floating_point() else 1
        if name == "aten::nonzero":
            note(
                "a mask was asked for its size (`nonzero`, a boolean index): all its elements were assumed true"
            )
            mask = args[0]
            return True, torch.empty((mask.numel(), mask.dim()), dtype=torch.int64)
        return False, None

    instruments.recorder.assume_values = assume
    with FakeTensorMode(allow_non_fake_inputs=True):
        yield


def _replace_parameters_on_apply(situation: Situation) -> None:
    """`Module.to()` swaps tensors in place, which fake tensors refuse: the parameters are replaced instead.

    A parameter keeps its place in the module and gets a new identity, as with `torch.__future__` swapping off.
    """

    def apply(self: torch.nn.Module, function: Any, recurse: bool = True) -> torch.nn.Module:
        if recurse:
            for child in self.children():
                child._apply(function)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                situation.quiet += 1
                try:
                    with torch.no_grad():
                        made = function(parameter)
                finally:
                    situation.quiet -= 1
                if made is not parameter:
                    self._parameters[name] = torch.nn.Parameter(made, parameter.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = function(buffer)
        return self

    torch.nn.Module._apply = apply
