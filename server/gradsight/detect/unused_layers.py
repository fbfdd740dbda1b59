"""Layers and parameters that a model makes, an optimizer holds, and nothing is ever computed with.

That nothing uses them must hold on every path: a path that uses one grants it.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.detect.registration import is_read_of
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import AttributeSet, GaveUp, ModuleWrapped, Read, StandInApplied, Used, Viewed
from gradsight.model.values import ClassValue, Instance, Layer, Seq, tensors_in

KIND = "layer-unused"
WAITING = ("DistributedDataParallel", "DDP")


class UnusedLayers:
    """Compares what modules hold with what was computed."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.used: set[Tensor] = set()
        self.places: dict[tuple[int, str], Site] = {}
        self.owners: dict[int, Instance] = {}
        self.waits: list[tuple[Any, Site]] = []
        """Modules in a wrapper that waits for a gradient of every parameter, and where they were wrapped."""
        self.handed_out: set[int] = set()

    def on_attribute_set(self, fact: AttributeSet) -> None:
        if isinstance(fact.owner, Instance) and isinstance(fact.value, (Instance, Layer, Tensor)):
            self.owners[id(fact.owner)] = fact.owner
            self.places[id(fact.owner), fact.name] = self.path.site(fact.node)

    def on_used(self, fact: Used) -> None:
        for value in fact.arguments.values():
            self.note_used(value)

    def on_read(self, fact: Read) -> None:
        self.note_used(fact.value)

    def on_viewed(self, fact: Viewed) -> None:
        self.note_used(fact.tensor)

    def on_stand_in_applied(self, fact: StandInApplied) -> None:
        self.used.update(fact.parameters)

    def note_used(self, value: Any) -> None:
        if type(value) is Tensor:
            if value.is_parameter:
                self.used.add(value)
        elif type(value) is Seq:
            self.used.update(tensor for tensor in tensors_in(value) if tensor.is_parameter)

    def on_gave_up(self, fact: GaveUp) -> None:
        self.handed_out.update(id(value) for value in fact.values)

    def on_module_wrapped(self, fact: ModuleWrapped) -> None:
        call = fact.site.node
        if fact.callee.rpartition(".")[2] in WAITING and isinstance(call, ast.Call):
            asked = {keyword.arg: keyword.value for keyword in call.keywords}
            if "find_unused_parameters" in asked:
                # The author knows of layers that are not used.
                self.handed_out.add(id(fact.module))
            elif not ({"static_graph", None} & set(asked)):
                self.waits.append((fact.module, fact.site))

    def finish(self) -> None:
        path = self.path
        if not path.backwards or path.ended_early or path.truncated or path.gradients_unknown:
            return
        held = {tensor for one in path.optimizers for tensor in path.ever_held_by(one) if one.stepped}
        reached = {leaf for run in path.backwards for leaf in run.leaves}
        named: set[Tensor] = set()
        for (owner_id, name), place in self.places.items():
            owner = self.owners[owner_id]
            value = owner.attributes.get(name)
            own = [tensor for _, tensor in path.tensors_of(owner, "parameter")]
            if not own or not (set(own) & reached) or is_of_library(owner):
                continue
            parts = [value] if isinstance(value, Tensor) else self.parameters(value)
            if not parts or not set(parts) <= held or not set(parts) <= set(own):
                continue
            if set(parts) & (self.used | reached):
                self.claims.granted.add((KIND, place.key))
            elif all(part.requires_grad is True for part in parts) and not self.may_be_used(owner, value):
                self.report(owner, name, place, set(parts))
                named.update(parts)
        for module, place in self.waits:
            self.check_rounds(module, place, named)

    def check_rounds(self, module: Any, place: Site, named: set[Tensor]) -> None:
        """Rounds of a loop use a part of a module that waits for the gradients of all of it; but for what was `named`."""
        if id(module) in self.handed_out:
            return
        own = [(name, leaf) for name, leaf in self.path.tensors_of(module, "parameter") if leaf not in named]
        rounds: dict[Any, tuple[set[Tensor], Site]] = {}
        for run in self.path.backwards:
            reached, _ = rounds.setdefault(run.site.loops, (set(), run.site))
            reached.update(run.leaves)
        for reached, site in [*rounds.values()][:-1]:
            missing = [name for name, leaf in own if leaf.requires_grad is True and leaf not in reached]
            if missing and len(missing) < len(own):
                step = Step("needed", site, f"this backward gives `{missing[0]}` no gradient")
                self.claims.add(KIND, place, [step], target=missing[0], how="at times")
                return

    def parameters(self, value: Any) -> list[Tensor]:
        if not isinstance(value, (Instance, Layer)) or value.module is None:
            return []
        return [tensor for _, tensor in self.path.tensors_of(value, "parameter")]

    def may_be_used(self, owner: Instance, value: Any) -> bool:
        """Whether unknown code was given the module or the part."""
        return (
            owner.escaped
            or bool(getattr(value, "escaped", False))
            or bool(self.handed_out & {id(owner), id(value)})
        )

    def report(self, owner: Instance, name: str, place: Site, parts: set[Tensor]) -> None:
        wait = next(
            (site for module, site in self.waits if parts <= set(self.parameters(module))),
            None,
        )
        runs = [run for run in self.path.backwards if run.leaves & set(self.parameters(owner))]
        steps = (
            [Step("call", wait, "this waits for a gradient of every parameter")] if wait is not None else []
        )
        self.claims.add(
            KIND,
            place,
            steps,
            target=f"self.{name}",
            how="waited"
            if wait is not None and len(runs) > 1
            else "mentioned"
            if is_mentioned(owner, name)
            else "never",
        )


def is_of_library(owner: Instance) -> bool:
    unit = owner.cls.unit
    return unit is None or bool(unit.library)


def is_mentioned(owner: Instance, name: str) -> bool:
    """Whether a class of the object, or one it derives from, reads the attribute by its name or looks attributes up."""
    return any(
        is_read_of(part, name)
        or is_read_of(part, "_modules")
        or (isinstance(part, ast.Name) and part.id == "getattr")
        for one in owner.cls.lineage()
        if isinstance(one, ClassValue) and one.node is not None
        for part in syntax_parts(one.node)
    )
