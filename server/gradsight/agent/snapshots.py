"""Values that were meant to be kept and were not: one tensor stored many times, a state that follows the model.

`states.append(state)` keeps a reference.  When `state` is then written in place, every entry shows the last value.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch

from gradsight.agent.faults import Fault, Ledger, step_at
from gradsight.agent.graph import untracked
from gradsight.agent.oplog import OpLog, operator_label
from gradsight.agent.sites import Stack, capture, place_of, text_of

_MOST_STORED = 10_000
_MOST_ENTRIES = 10_000

# Their results are new tensors; a statement that drops one has no effect.
_COPIES = frozenset(
    ("detach", "to", "cuda", "cpu", "float", "double", "half", "bfloat16", "long", "int", "bool", "clone", "view",
     "reshape", "permute", "expand", "contiguous", "type", "flatten", "masked_select")
)  # fmt: skip


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

    def store(self, value: Any) -> Any:
        """Called by `items.append(value)` of the user's code; hands the value through."""
        if isinstance(value, torch.Tensor):
            with untracked():
                if not value.is_inference():
                    self._remember(value, capture(2))
        return value

    def _remember(self, tensor: torch.Tensor, stack: Stack) -> None:
        stored = self._stored.get(id(tensor))
        if stored is None or stored.reference() is not tensor:
            if len(self._stored) > _MOST_STORED:
                self._stored = {
                    key: item for key, item in self._stored.items() if item.reference() is not None
                }
            stored = self._stored[id(tensor)] = _Stored(weakref.ref(tensor))
        if len(stored.times) < 64:
            stored.times.append((self.log.clock, tensor._version, stack))

    def collected(self, tensors: Any, reader: Stack) -> None:
        """A list of tensors is read as one (`stack`, `cat`): entries that are one and the same tensor."""
        if not self._stored or not isinstance(tensors, (list, tuple)) or len(tensors) > _MOST_ENTRIES:
            return
        seen: set[int] = set()
        for tensor in tensors:
            if id(tensor) in seen:
                self._judge(tensor, reader)
                return
            seen.add(id(tensor))

    def _judge(self, tensor: torch.Tensor, reader: Stack) -> None:
        stored = self._stored.get(id(tensor))
        if stored is None or stored.reference() is not tensor or len(stored.times) < 2:
            return
        first_clock, first_version, first_stack = stored.times[0]
        last_version = stored.times[-1][1]
        if last_version == first_version or not first_stack:
            return
        writes = [
            write for write in self.log.writes_to(tensor) or () if write.clock > first_clock and write.stack
        ]
        if not writes:
            return
        place = place_of(writes[0].stack[0])
        entry = text_of(place_of(first_stack[0]))
        message = (
            f"`{text_of(place)}` changes the tensor that `{entry}` has stored: every entry is the same tensor"
        )
        steps = (
            *step_at("made", "stored here without a copy", first_stack),
            *step_at("written", f"changed here by `{operator_label(writes[0].name)}`", writes[0].stack),
            *step_at("read", "all entries have the last value", reader),
        )
        evidence = {"entries": len(stored.times), "versions": [first_version, last_version]}
        self.ledger.add(Fault("GS107", message, place, steps, "warning", evidence))

    def dropped(self, owner: Any, name: str, value: Any) -> Any:
        """Called by `x.clamp(0)` as a statement of the user's code; hands the value through."""
        if isinstance(owner, torch.Tensor) and isinstance(value, torch.Tensor) and value is not owner:
            if name in _COPIES or hasattr(torch.Tensor, name + "_"):
                stack = capture(2)
                if stack:
                    place = place_of(stack[0])
                    message = f"the result of `{text_of(place)}` is dropped: `{name}` does not change the tensor itself"
                    twin = f"{name}_" if hasattr(torch.Tensor, name + "_") else ""
                    self.ledger.add(Fault("GS209", message, place, (), "warning", {"in_place_form": twin}))
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

    def _judge_state(self, module: torch.nn.Module, state: Any, reader: Stack) -> None:
        """A state that shares its storage with the module it is loaded into restores nothing."""
        if not hasattr(state, "items"):
            return
        own = {name: tensor for name, tensor in (*module.named_parameters(), *module.named_buffers())}
        for name, value in state.items():
            tensor = own.get(name)
            if not isinstance(value, torch.Tensor) or tensor is None or tensor.layout is not torch.strided:
                continue
            if value.untyped_storage()._cdata != tensor.untyped_storage()._cdata:
                continue
            taken = self._states.get(id(value))
            if taken is None or not taken[1]:
                continue
            writes = [
                write for write in self.log.writes_to(tensor) or () if write.clock > taken[0] and write.stack
            ]
            if not writes:
                continue
            place = place_of(taken[1][0])
            message = f"`{text_of(place)}` is no copy: the saved state follows the model, and loading it restores nothing"
            steps = (
                *step_at("written", "the model changes here, and the saved state with it", writes[0].stack),
                *step_at("read", "loaded back here", reader),
            )
            self.ledger.add(Fault("GS107", message, place, steps, "warning", {"entry": name}))
            return
