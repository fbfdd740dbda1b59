"""What a layer that works in place was given, and is read again afterwards by its own name: a skip connection.

`out = self.branch(x)` with an in-place layer at the head of the branch overwrites `x`, and `out + x` adds the new value;
so does `x + self.branch(x)`.
"""

from __future__ import annotations

import ast
import weakref
from dataclasses import dataclass
from typing import Any

import torch

from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.graph import untracked
from gradsight.agent.held_values import HeldValue, held_value
from gradsight.agent.sites import (
    FrameKey,
    Stack,
    library_frames,
    line_of,
    names_read,
    place_of,
    statement_of,
    text_of,
    user_frames,
)

_MOST_KEPT = 64
_LARGEST_COMPARED = 1 << 16
# What asks a tensor for its form does not read its values.
_FORM_ONLY = frozenset(
    ("size", "dim", "numel", "stride", "is_contiguous", "is_floating_point", "type", "get_device", "new_zeros",
     "new_ones", "new_empty", "new_full", "zeros_like", "ones_like", "empty_like", "rand_like", "randn_like",
     "full_like", "__len__", "__get__", "requires_grad_", "register_hook", "__hash__")
)  # fmt: skip


@dataclass
class _Overwritten:
    """A tensor that a line gave to an in-place layer under these names of its function, and what it was before."""

    tensor: weakref.ref[torch.Tensor]
    names: frozenset[str]
    call: FrameKey
    stack: Stack
    before: torch.Tensor


class BranchInputs:
    """Keeps the last few tensors that in-place layers have overwritten."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.watched: dict[int, _Overwritten | HeldValue] = {}

    @quietly
    def written(self, tensor: torch.Tensor, stack: Stack) -> None:
        """An operator is about to write to this tensor."""
        if tensor.numel() > _LARGEST_COMPARED:
            return
        if not _in_place_layer():
            held = held_value(tensor, stack) if torch.is_grad_enabled() else None
            if held is not None:
                self._watch(tensor, held)
            return
        frame = next(user_frames(), None)
        call = next((key for key in stack if frame is not None and key.code is frame.f_code), None)
        if frame is None or call is None:
            return
        statement = statement_of(call)
        if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.Return)):
            return
        names = {name for name, value in frame.f_locals.items() if value is tensor}
        names = (names & names_read(statement)) - _bound_by(statement)
        if not names:
            return
        before = tensor.detach().clone()
        self._watch(tensor, _Overwritten(weakref.ref(tensor), frozenset(names), call, stack, before))

    def _watch(self, tensor: torch.Tensor, kept: _Overwritten | HeldValue) -> None:
        if len(self.watched) >= _MOST_KEPT:
            self.watched = {key: each for key, each in self.watched.items() if each.tensor() is not None}
        if len(self.watched) < _MOST_KEPT:
            self.watched[id(tensor)] = kept

    @quietly
    def used(self, tensor: Any, function: str, reader: Stack) -> None:
        """A function is called with a tensor that was overwritten."""
        kept = self.watched.get(id(tensor))
        value = kept.tensor() if kept is not None else None
        if kept is None or value is None or value is not tensor:
            return
        if not reader or function in _FORM_ONLY:
            return
        if isinstance(kept, HeldValue):
            with untracked():
                fault = kept.fault(value, reader)
            if fault is not None:
                del self.watched[id(tensor)]
                self.ledger.add(fault)
            return
        if reader[0].code is not kept.call.code or line_of(reader[0]) < line_of(kept.call):
            return
        if line_of(reader[0]) == line_of(kept.call) and not _combines(statement_of(reader[0]), kept.names):
            return
        frame = next((each for each in user_frames() if each.f_code is reader[0].code), None)
        read = names_read(statement_of(reader[0])) & kept.names
        name = next((each for each in read if frame is not None and frame.f_locals.get(each) is tensor), "")
        if not name:
            return
        del self.watched[id(tensor)]
        with untracked():
            if not torch.equal(kept.before, value.detach()):
                self._report(name, kept, reader)

    def _report(self, name: str, kept: _Overwritten, reader: Stack) -> None:
        place = place_of(kept.call)
        layer = place_of(kept.stack[0])
        message = f"`{text_of(place, limit=40)}` overwrites `{name}` in place, and line {line_of(reader[0])} reads it again"
        steps = (
            *(step_at("made", "the layer that works in place", kept.stack[0]) if layer != place else ()),
            *step_at("read", f"`{name}` is read here with the new value", reader),
        )
        self.ledger.add(Fault("alias-read-after-write", message, place, steps, "warning", {"name": name}))


def _in_place_layer() -> bool:
    """Whether the innermost layer that is running works in place."""
    for frame in library_frames():
        if frame.f_code.co_name == "forward":
            return bool(getattr(frame.f_locals.get("self"), "inplace", False))
    return False


def _combines(statement: ast.stmt | None, names: frozenset[str]) -> bool:
    """Whether an operator of the statement itself combines such a name with what a call gave: `x + self.branch(x)`."""
    if statement is None or any(frame.f_code.co_name == "forward" for frame in library_frames()):
        return False
    for node in ast.walk(statement):
        if isinstance(node, ast.BinOp):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(one, ast.Name) and one.id in names and not isinstance(other, ast.Name):
                    if any(isinstance(inner, ast.Call) for inner in ast.walk(other)):
                        return True
    return False


def _bound_by(statement: ast.stmt) -> set[str]:
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
