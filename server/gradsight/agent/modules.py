"""Which line put what into a module: attributes, parameters and the containers that hide them."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from gradsight.agent.cuts import label, name_list
from gradsight.agent.faults import Fault, Ledger, calls_of, quietly, step_at
from gradsight.agent.graph import leaf_of
from gradsight.agent.naming import reachable_modules
from gradsight.agent.numbering import is_trainable_leaf
from gradsight.agent.oplog import OpLog
from gradsight.agent.patches import Patches
from gradsight.agent.repeated_modules import RowWatch
from gradsight.agent.shadow import Leaf, Shadow
from gradsight.agent.sites import (
    FrameKey,
    Stack,
    capture,
    is_user_file,
    library_frames,
    place_of,
    text_of,
    user_frames,
)
from gradsight.agent.training import OptimizerRecord, TrainingWatch

_MOST_ENTRIES = 20_000


@dataclass(frozen=True)
class Attribute:
    """`module.attribute = value`, with a value that torch does not register."""

    module: weakref.ref[torch.nn.Module]
    attribute: str
    kind: str
    stack: Stack

    def hidden(self) -> list[torch.Tensor]:
        """The parameters behind this attribute that the module does not list."""
        module = self.module()
        if module is None:
            return []
        own = {id(parameter) for parameter in module.parameters()}
        value = module.__dict__.get(self.attribute)
        return [item for item in _parameters_in(value, 3) if id(item) not in own]


@dataclass(frozen=True)
class Birth:
    """Where and when a parameter was put into its module."""

    parameter: weakref.ref[torch.Tensor]
    stack: Stack
    clock: int


@dataclass(frozen=True)
class _Late:
    """A leaf that got a gradient and belongs to no optimizer.

    `is_part_of_trained`: it lies in one module with leaves of an optimizer.  `clock`: when it got its first gradient.
    """

    leaf: Leaf
    birth: Birth
    is_part_of_trained: bool
    clock: int


@dataclass(frozen=True)
class _Placed:
    """Where and when a module was put into another one."""

    clock: int
    module: weakref.ref[torch.nn.Module]
    stack: Stack


class ModuleNotes:
    """Watches `nn.Module.__setattr__`; a module costs a few notes when it is built, and nothing when it runs."""

    def __init__(self, log: OpLog, ledger: Ledger) -> None:
        self.log = log
        self.ledger = ledger
        self.attributes: list[Attribute] = []
        self.births: dict[int, Birth] = {}
        self.inplace: dict[int, tuple[weakref.ref[torch.nn.Module], Stack]] = {}
        self._late: dict[FrameKey, _Late] = {}
        self._placed: list[_Placed] = []

    def install(self, patches: Patches) -> None:
        """Stands before the assignment of every module attribute."""
        RowWatch(self.ledger).install(patches)
        original = torch.nn.Module.__setattr__
        registry = self

        def assign(self: torch.nn.Module, name: str, value: Any) -> None:
            original(self, name, value)
            if not patches.active:
                return
            if isinstance(value, (list, tuple, dict, torch.Tensor)) or _is_users_object(value):
                registry._note(self, name, value)
            elif value is True and name == "inplace":
                registry.inplace[id(self)] = (weakref.ref(self), capture(2))
            elif isinstance(value, torch.nn.Module):
                registry._put(value, capture(2, 1))
            elif name == "requires_grad" and isinstance(value, bool):
                registry._flagged(self, value, capture(2))

        patches.put(torch.nn.Module, "__setattr__", assign)
        register = torch.nn.Module.register_parameter

        def register_parameter(self: torch.nn.Module, name: str, param: Any) -> None:
            register(self, name, param)
            if param is not None and patches.active:
                registry.born(param, capture(2))

        patches.put(torch.nn.Module, "register_parameter", register_parameter)

    @quietly
    def _note(self, module: torch.nn.Module, name: str, value: Any) -> None:
        if isinstance(value, torch.nn.Parameter):
            self.born(value, capture(3))
            return
        if len(self.attributes) >= _MOST_ENTRIES or name in module._buffers:
            return
        kind = "tensor" if isinstance(value, torch.Tensor) else type(value).__name__
        stack = capture(3)
        if stack:
            self.attributes.append(Attribute(weakref.ref(module), name, kind, stack))

    def _put(self, module: torch.nn.Module, stack: Stack) -> None:
        if len(self._placed) < _MOST_ENTRIES:
            self._placed.append(_Placed(self.log.clock, weakref.ref(module), stack))

    @quietly
    def _flagged(self, module: torch.nn.Module, value: bool, stack: Stack) -> None:
        """`module.requires_grad = False`: only parameters have the flag; a module that sets its own reads it itself."""
        owner = next(user_frames(), None)
        if not stack or owner is None or owner.f_locals.get("self") is module:
            return
        if hasattr(type(module), "requires_grad"):
            return
        if any(each.requires_grad != value for each in module.parameters()):
            place = place_of(stack[0])
            message = f"`{text_of(place)}` sets an attribute of the module: its parameters keep their own `requires_grad`"
            self.ledger.add(
                Fault("attribute-typo", message, place, (), "warning", {"meant": "requires_grad_()"})
            )

    def born(self, parameter: torch.Tensor, stack: Stack) -> None:
        """A parameter begins to exist."""
        self.births[id(parameter)] = Birth(weakref.ref(parameter), stack, self.log.clock)

    def birth(self, parameter: torch.Tensor) -> Birth | None:
        """Where this parameter was put into its module."""
        birth = self.births.get(id(parameter))
        return birth if birth is not None and birth.parameter() is parameter else None

    def hidden_container(self) -> Attribute | None:
        """The latest attribute that hides parameters from its module."""
        for entry in reversed(self.attributes):
            if entry.hidden():
                return entry
        return None

    def built(self, module: torch.nn.Module) -> Stack:
        """The line that built an in-place module."""
        reference, stack = self.inplace.get(id(module), (None, ()))
        return stack if reference is not None and reference() is module else ()

    def builder(self) -> Stack:
        """An in-place module runs inside a container: what to change is the line that built it."""
        if not self.inplace:
            return ()
        owner: Any = None
        for frame in library_frames():
            if frame.f_code.co_name == "forward":
                if owner is not None:
                    return self.built(owner)
                owner = frame.f_locals.get("self")
                if not isinstance(owner, torch.nn.Module) or not getattr(owner, "inplace", False):
                    return ()
        return ()

    @quietly
    def gained(self, leaves: list[Leaf], training: TrainingWatch, shadow: Shadow) -> None:
        """Leaves that got a gradient; those of no optimizer are remembered by the line that made them."""
        if not training.optimizers:
            return
        managed = training.managed
        for leaf in leaves:
            if managed >> leaf.bit & 1:
                continue
            tensor = leaf.tensor()
            birth = self.birth(tensor) if tensor is not None else None
            if birth is not None and birth.stack and birth.stack[0] not in self._late:
                self._late[birth.stack[0]] = _Late(
                    leaf, birth, _shares_module(leaf, managed, shadow), self.log.clock
                )

    @quietly
    def finish(self, training: TrainingWatch, shadow: Shadow, ledger: Ledger) -> None:
        """Leaves that gained gradient and belong to no optimizer, when optimizers did step."""
        stepped = [record for record in training.optimizers.values() if record.steps]
        if not stepped:
            return
        managed = 0
        for record in training.optimizers.values():
            managed |= record.mask
        orphans = [leaf for leaf in shadow.leaves if not managed >> leaf.bit & 1 and training.gained(leaf)]
        by_id = {id(leaf.tensor()): leaf for leaf in orphans if leaf.tensor() is not None}
        if by_id:
            self._judge_unregistered(by_id, managed, shadow, ledger, stepped[0])
        self._judge_late(stepped, training, ledger)

    def _judge_unregistered(
        self, orphans: dict[int, Leaf], managed: int, shadow: Shadow, ledger: Ledger, record: OptimizerRecord
    ) -> None:
        for entry in self.attributes:
            module = entry.module()
            if module is None:
                continue
            hidden = [orphans[id(item)] for item in entry.hidden() if id(item) in orphans]
            registered = [shadow.known_leaf(item) for item in module.parameters() if item.requires_grad]
            trains_rest = all(leaf is not None and managed >> leaf.bit & 1 for leaf in registered)
            if not hidden or not trains_rest:
                continue
            place = place_of(entry.stack[0])
            holder = f"a plain `{entry.kind}`" if entry.kind != "tensor" else "a plain tensor attribute"
            message = (
                f"`{entry.attribute}` is {holder} and registers nothing: {name_list(hidden)} got gradients, "
                "and no optimizer moves them"
            )
            steps = step_at("call", "the optimizer does not see it", record.made)
            ledger.add(
                Fault(
                    "not-registered",
                    message,
                    place,
                    steps,
                    "warning",
                    {"parameters": [label(leaf) for leaf in hidden][:20]},
                )
            )

    def _judge_late(self, stepped: list[OptimizerRecord], training: TrainingWatch, ledger: Ledger) -> None:
        """Parameters made after the optimizer: layers built in forward, or a part that was replaced."""
        first = stepped[0]
        made = step_at("made", "the optimizer was made before", first.made)
        for late in self._late.values():
            leaf, birth = late.leaf, late.birth
            steps = (*made, *calls_of(birth.stack))
            if birth.clock < first.made_clock or not birth.stack or not first.made:
                continue
            place = place_of(self._where_put(leaf, birth, first))
            if any(key.code.co_name in ("forward", "__call__") for key in birth.stack):
                message = f"`{text_of(place)}` creates new parameters on every call, so they never train"
                ledger.add(Fault("layer-made-in-forward", message, place, steps, "warning", {}))
            elif any(
                not training.gained(old) and not training.ever_missing >> old.bit & 1
                for old in first.leaves.values()
            ):
                message = (
                    f"`{text_of(place)}` replaces parameters after the optimizer was made: "
                    f"it still moves the old ones, and `{label(leaf)}` is not trained"
                )
                ledger.add(Fault("parameters-replaced", message, place, steps, "warning", {}))
            elif not late.is_part_of_trained or not self._is_left_alone(late, training):
                continue
            elif birth.stack[0].code in {key.code for key in first.made}:
                # One function makes the optimizer and then more parameters: it is the optimizer that comes too early.
                message = f"`{text_of(place_of(first.made[0]), limit=40)}` is made before `{label(leaf)}`, which no step moves"
                after = step_at("made", "these parameters are made after the optimizer", birth.stack)
                place = place_of(first.made[0])
                ledger.add(Fault("parameters-not-optimized", message, place, after, "warning", {}))
            else:
                message = (
                    f"`{text_of(place)}` adds parameters after the optimizer was made: "
                    f"`{label(leaf)}` gets gradients, and no step moves it"
                )
                ledger.add(
                    Fault("parameters-replaced", message, place, steps, "warning", {"parameter": label(leaf)})
                )

    def _where_put(self, leaf: Leaf, birth: Birth, optimizer: OptimizerRecord) -> FrameKey:
        """The line that puts the module of a late parameter into another one, or else the line that makes it."""
        tensor = leaf.tensor()
        since = max(birth.clock, optimizer.made_clock)
        for placed in reversed(self._placed):
            if placed.clock < since or not placed.stack or placed.stack[0].code.co_name == "__init__":
                continue
            module = placed.module()
            if module is not None and any(each is tensor for each in module.parameters()):
                return placed.stack[0]
        return _where_made(birth, optimizer.made)

    def _is_left_alone(self, late: _Late, training: TrainingWatch) -> bool:
        """Nobody wrote to this parameter since it got its first gradient, though the optimizers stepped."""
        tensor = late.leaf.tensor()
        if tensor is None or training.managed >> late.leaf.bit & 1 or not training.stepped_after(late.leaf):
            return False
        return not any(write.clock > late.clock for write in self.log.writes_to(tensor) or ())


def _where_made(birth: Birth, optimizer: Stack) -> FrameKey:
    """The line that makes the module; inside its own `__init__` it is put together, unless the optimizer is made there too."""
    beside = {key.code for key in optimizer}
    for key in birth.stack:
        if key.code.co_name != "__init__" or key.code in beside:
            return key
    return birth.stack[0]


def _shares_module(leaf: Leaf, managed: int, shadow: Shadow) -> bool:
    """Whether a module that the user's code can name holds this leaf beside leaves of an optimizer."""
    tensor = leaf.tensor()
    for module in reachable_modules():
        own = [each for each in module.parameters() if not is_lazy(each)]
        if any(each is tensor for each in own):
            known = (shadow.known_leaf(each) for each in own)
            return any(each is not None and managed >> each.bit & 1 for each in known)
    return False


def _parameters_in(value: Any, depth: int) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.nn.Module):
        yield from value.parameters()
    elif isinstance(value, torch.Tensor):
        if is_trainable_leaf(value):
            yield value
        elif value.grad_fn is not None:
            yield from _converted(value)
    elif depth and isinstance(value, (list, tuple)):
        for item in value[:1000]:
            yield from _parameters_in(item, depth - 1)
    elif depth and isinstance(value, dict):
        for item in list(value.values())[:1000]:
            yield from _parameters_in(item, depth - 1)
    elif depth and _is_users_object(value):
        for item in list(vars(value).values())[:1000]:
            yield from _parameters_in(item, depth - 1)


def _converted(value: torch.Tensor) -> Iterator[torch.Tensor]:
    """The parameter of which `nn.Parameter(...).to(...)` has made a tensor of its own."""
    node = value.grad_fn
    while node is not None and len(node.next_functions) == 1 and node.name().startswith("ToCopy"):
        node = node.next_functions[0][0]
    leaf = leaf_of(node) if node is not None else None
    if isinstance(leaf, torch.nn.Parameter):
        yield leaf


def _is_users_object(value: Any) -> bool:
    """Whether this is an object of a class of the user that is no module: `parameters()` does not look into it."""
    kind = type(value)
    if isinstance(value, torch.nn.Module) or not hasattr(value, "__dict__") or isinstance(value, type):
        return False
    owner = sys.modules.get(kind.__module__)
    return is_user_file(getattr(owner, "__file__", None) or "<none>")
