"""A value of the graph that a line changes under one name, while another place of the same function holds it too.

`z = stats["mu"]; z += noise; loss(z) + penalty(stats["mu"])`: the place has the new value.  To fetch a state and advance it
in place is an idiom; what tells the mistake from it is that the program goes on with both.
"""

from __future__ import annotations

import ast
import types
import weakref
from dataclasses import dataclass
from typing import Any

import torch

from gradsight.agent.faults import Fault, step_at
from gradsight.agent.graph import untracked
from gradsight.agent.sites import (
    Stack,
    line_of,
    names_read,
    place_of,
    statement_of,
    text_of,
    user_frames,
)

_MOST_FRAMES = 4
_MOST_ENTRIES = 64
_CODE = (type, types.ModuleType, types.FunctionType, types.MethodType, torch.Tensor)


@dataclass(frozen=True)
class _Place:
    """Where else a function holds the tensor: a name, or an entry or attribute of what a name stands for."""

    code: types.CodeType
    line: int
    written: str
    base: str
    kind: str
    key: Any

    @property
    def text(self) -> str:
        if self.kind == "name":
            return self.base
        return f"{self.base}.{self.key}" if self.kind == "attribute" else f"{self.base}[{self.key!r}]"

    def value(self, names: dict[str, Any]) -> Any:
        holder = names.get(self.base)
        if self.kind == "name":
            return holder
        if self.kind == "attribute":
            return getattr(holder, "__dict__", {}).get(self.key)
        try:
            return holder[self.key] if isinstance(holder, (dict, list, tuple)) else None
        except (LookupError, TypeError):
            return None


@dataclass
class HeldValue:
    """A tensor that was changed under a name, and what it was before."""

    tensor: weakref.ref[torch.Tensor]
    places: tuple[_Place, ...]
    stack: Stack
    before: torch.Tensor

    def fault(self, tensor: torch.Tensor, reader: Stack) -> Fault | None:
        """What to say when a function is called with the tensor: whether the line reads the other place."""
        frame = next((each for each in user_frames() if each.f_code is reader[0].code), None)
        statement = statement_of(reader[0])
        if frame is None or statement is None:
            return None
        for place in self.places:
            if place.code is not reader[0].code or line_of(reader[0]) <= place.line:
                continue
            if place.text not in _texts_in(statement) or place.value(frame.f_locals) is not tensor:
                continue
            if place.written not in names_read(statement) or torch.equal(self.before, tensor.detach()):
                continue
            return self._fault(place, reader)
        return None

    def _fault(self, place: _Place, reader: Stack) -> Fault:
        write = place_of(self.stack[0])
        row = line_of(reader[0])
        message = f"`{text_of(write, limit=40)}` changes `{place.text}` too, and line {row} reads both as two values"
        steps = step_at("read", f"`{place.text}` is read here with the new value", reader)
        return Fault("alias-read-after-write", message, write, steps, "warning", {"name": place.text})


def held_value(tensor: torch.Tensor, stack: Stack) -> HeldValue | None:
    """What is about to be written, if it is a value of the graph that its functions hold in several places."""
    if not tensor.requires_grad or tensor.is_leaf or not stack:
        return None
    places: list[_Place] = []
    for depth, frame in enumerate(user_frames()):
        key = next((each for each in stack if each.code is frame.f_code), None)
        if depth == _MOST_FRAMES or key is None:
            break
        statement = statement_of(key)
        if statement is None:
            break
        named = names_read(statement) | _targets_of(statement)
        names = frame.f_locals
        written = next((name for name in named if names.get(name) is tensor), "")
        if written:
            found = [one for one in _places_in(names, tensor) if not (one[1] == "name" and one[0] in named)]
            line = line_of(key)
            places += [_Place(frame.f_code, line, written, *one) for one in found]
    if not places:
        return None
    with untracked():
        return HeldValue(weakref.ref(tensor), tuple(places), stack, tensor.detach().clone())


def _places_in(names: dict[str, Any], tensor: torch.Tensor) -> list[tuple[str, str, Any]]:
    found: list[tuple[str, str, Any]] = []
    for name, value in list(names.items()):
        if value is tensor:
            found.append((name, "name", None))
        elif isinstance(value, (dict, list, tuple)):
            if len(value) <= _MOST_ENTRIES:
                entries = value.items() if isinstance(value, dict) else enumerate(value)
                found += [(name, "entry", key) for key, entry in entries if entry is tensor]
        elif not isinstance(value, _CODE):
            own = getattr(value, "__dict__", None)
            if isinstance(own, dict) and len(own) <= _MOST_ENTRIES:
                found += [(name, "attribute", key) for key, entry in own.items() if entry is tensor]
    return found


def _texts_in(statement: ast.stmt) -> set[str]:
    return {
        ast.unparse(node)
        for node in ast.walk(statement)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load)
    }


def _targets_of(statement: ast.stmt) -> set[str]:
    target = statement.target if isinstance(statement, ast.AugAssign) else None
    return {target.id} if isinstance(target, ast.Name) else set()
