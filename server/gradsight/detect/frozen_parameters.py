"""Parameters that are meant to stand still and are moved by their optimizer all the same."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_ledger import GradientLedger, GradientRecord
from gradsight.detect.path import Path
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer, members_of
from gradsight.model.name_hints import suggests
from gradsight.model.sites import Site
from gradsight.model.tensors import Region, Tensor
from gradsight.model.trace import Stepping
from gradsight.model.values import ClassValue, Instance, Number, Unknown
from gradsight.ops.traits import having

ADAMS = having("remembers-gradients")
"""Optimizers that go on moving a parameter for as long as their running averages last."""


class FrozenParameters:
    """Frozen by `requires_grad`, or by zeroing the gradient."""

    def __init__(self, path: Path, claims: Claims, ledger: GradientLedger) -> None:
        self.path = path
        self.claims = claims
        self.ledger = ledger
        ledger.watchers.append(self)
        self.still_moving: dict[Tensor, tuple[Site, Site]] = {}
        """Parameters that a step moved although their gradient was zeroed, until they are set right by hand."""
        self.stepped_live: set[Tensor] = set()
        """Parameters that a step has moved by a gradient of their own."""

    def finish(self) -> None:
        self.report_moved()

    def on_stepping(self, fact: Stepping) -> None:
        optimizer, site = fact.optimizer, fact.site
        self.report_moved()
        parameters = self.path.parameters_of(optimizer)
        live = [p for p in parameters if self.is_live(p)]
        for parameter in parameters:
            if not isinstance(parameter.grad, Tensor):
                continue
            if parameter.requires_grad is False and parameter.frozen_at is not None:
                self.check_frozen(optimizer, parameter, site)
            record = self.ledger.records.get(parameter)
            if record is None:
                continue
            if record.state in ("zeroed", "masked") and record.site is not None:
                others = [p for p in live if p is not parameter]
                if others or record.state == "masked":
                    self.check_zeroed(optimizer, parameter, record, site)
            elif record.state in ("filled", "assigned"):
                self.stepped_live.add(parameter)

    def is_live(self, parameter: Tensor) -> bool:
        record = self.ledger.records.get(parameter)
        return record is not None and record.pending and record.state in ("filled", "assigned")

    def check_frozen(self, optimizer: Optimizer, parameter: Tensor, site: Site) -> None:
        """requires_grad is off, and an old gradient is still there."""
        place = parameter.frozen_at
        stale = not self.ledger.was_cleared(parameter, 0, self.path.tick)
        if place is not None and (
            stale or self.remembers(optimizer, parameter) or self.decays(optimizer, parameter)
        ):
            self.claims.add(
                "frozen-still-moves",
                place,
                [
                    Step(
                        "written",
                        site,
                        "this step still moves it (momentum, weight decay or an old gradient)",
                    )
                ],
                parameter=parameter.label,
            )

    def check_zeroed(self, optimizer: Optimizer, parameter: Tensor, record: Any, site: Site) -> None:
        """A gradient that was zeroed by hand still lets weight decay and running averages move the parameter."""
        if not record.pending or set(record.site.guards) - set(site.guards):
            return
        carried = self.remembers(optimizer, parameter) and parameter in self.stepped_live
        pruned = record.state == "masked" and any(
            write.mode in ("silent", "no_grad") for write in parameter.storage.writes
        )
        if carried or (self.decays(optimizer, parameter) and not pruned):
            self.still_moving.setdefault(parameter, (record.site, site))

    def parameter_moved_by_hand(self, leaf: Tensor) -> None:
        self.still_moving.pop(leaf, None)

    def gradient_used(self, leaf: Tensor, record: GradientRecord, node: ast.AST) -> None:
        """Says nothing about who moves."""

    def gradient_written(
        self, leaf: Tensor, target: Tensor, op: str, site: Site, others: list[Tensor], region: Region
    ) -> None:
        """The record says what it made of the gradient."""

    def report_moved(self) -> None:
        for parameter, (place, site) in self.still_moving.items():
            self.claims.add(
                "frozen-still-moves",
                place,
                [
                    Step(
                        "written",
                        site,
                        "this step still moves it (momentum, weight decay or an old gradient)",
                    ),
                    *self.path.call_steps(place),
                ],
                parameter=parameter.label,
                zeroed=True,
            )
        self.still_moving.clear()

    # -- what an optimizer does with a gradient of zero --------------------------------------------------------------

    def remembers(self, optimizer: Optimizer, parameter: Tensor) -> bool:
        """Whether earlier gradients go on moving the parameter."""
        name = optimizer.path.rpartition(".")[2]
        return name in ADAMS or self.is_on(self.option_of(optimizer, parameter, "momentum", 0))

    def decays(self, optimizer: Optimizer, parameter: Tensor) -> bool:
        fact = self.path.table.find("optim." + optimizer.path.rpartition(".")[2])
        default = float(fact.option_defaults.get("weight_decay", 0)) if fact is not None else 0
        return self.is_on(self.option_of(optimizer, parameter, "weight_decay", default))

    def is_on(self, value: Any) -> bool:
        return isinstance(value, (int, float)) and value != 0 and not isinstance(value, (Number, Unknown))

    def option_of(self, optimizer: Optimizer, parameter: Tensor, name: str, default: Any) -> Any:
        """An option of the parameter's group, or of the optimizer."""
        default = optimizer.options.get(name, default)
        own = [group.items for group in self.path.groups_of(optimizer) if parameter in members_of(group)]
        return own[0].get(name, default) if own else default


def frozen_places(parameters: Collection[Tensor]) -> list[Site]:
    """Where these parameters were frozen: each place once, three at most."""
    places = {tensor.frozen_at.key: tensor.frozen_at for tensor in parameters if tensor.frozen_at is not None}
    return sorted(places.values(), key=lambda place: place.line)[:3]


def may_thaw(site: Site) -> bool:
    """Whether code around a place, in its class or file, switches gradients on again, or leaves to a value whether it does."""
    receiver = site.frame.receiver
    lineage = receiver.cls.lineage() if isinstance(receiver, Instance) else ()
    texts = [one.node for one in lineage if isinstance(one, ClassValue) and one.node is not None]
    return any(thaws(part) for text in (*texts, *site.unit.tree) for part in syntax_parts(text))


def thaws(part: ast.AST) -> bool:
    if isinstance(part, ast.Assign):
        flags = [
            one for one in part.targets if isinstance(one, ast.Attribute) and one.attr == "requires_grad"
        ]
        return bool(flags) and not is_false(part.value)
    if not isinstance(part, ast.Call):
        return False
    called = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
    given = [*part.args, *(keyword.value for keyword in part.keywords)]
    return suggests("thaws", called) and not any(map(is_false, given))


def is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
