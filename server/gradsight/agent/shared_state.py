"""Tensors of a class that its objects change as if each had its own: `self.trace.mul_(0.9)` on a class attribute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from gradsight.agent.faults import Fault, Ledger, step_at
from gradsight.agent.naming import reachable_modules
from gradsight.agent.oplog import LoggedWrite, OpLog
from gradsight.agent.shadow import Mask, Shadow
from gradsight.agent.sites import place_of, text_of


def judge_shared_state(log: OpLog, shadow: Shadow, loss_events: Mask, ledger: Ledger) -> None:
    """Says which methods write to a tensor that several modules share, when its values came back into a loss."""
    found = {id(each): each for root in reachable_modules() for each in root.modules()}
    modules: list[torch.nn.Module] = list(found.values())
    classes: dict[type, int] = {}
    for module in modules:
        for kind in type(module).__mro__:
            classes[kind] = classes.get(kind, 0) + 1
    for kind, count in classes.items():
        if count < 2:
            continue
        owners = [each for each in modules if kind in type(each).__mro__]
        for name, tensor in _tensors_of(kind):
            if any(name in vars(each) or name in dict(each.named_buffers(recurse=False)) for each in owners):
                continue
            writes = [write for write in log.writes_to(tensor) or () if _is_own_method(write, kind)]
            _, _, events = shadow.read(tensor)
            if len(writes) > 1 and events & loss_events:
                _report(kind, name, count, writes[0], ledger)


def _tensors_of(kind: type) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in list(vars(kind).items()):
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            yield name, value


def _is_own_method(write: LoggedWrite, kind: type) -> bool:
    """Whether a method of this class wrote, to whatever object it belonged."""
    if not write.stack:
        return False
    methods: set[Any] = {getattr(value, "__code__", None) for value in vars(kind).values()}
    return write.stack[0].code in methods


def _report(kind: type, name: str, count: int, write: LoggedWrite, ledger: Ledger) -> None:
    place = place_of(write.stack[0])
    message = (
        f"`{text_of(place)}` changes `{kind.__name__}.{name}` for all {count} objects of the class: "
        "it is an attribute of the class, not of the object"
    )
    steps = step_at("written", "written here by every object", write.stack)
    ledger.add(
        Fault(
            "alias-read-after-write",
            message,
            place,
            steps,
            "warning",
            {"class": kind.__name__, "objects": count},
        )
    )
