"""A model that is made anew under its name after the optimizer was: steps move the one that had the name before."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from gradsight.detect.claims import Claims
from gradsight.detect.kept_models import is_module
from gradsight.detect.naming import value_of_target
from gradsight.detect.path import Path
from gradsight.model.events import PARAMETERS_OF, Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Assigned, Stepping
from gradsight.model.values import Instance, Layer, Unknown


class Rebinding(NamedTuple):
    """A name that was given another object, after an optimizer was made; what it had before, if that was seen."""

    name: str
    old: Any
    new: Any
    site: Site
    tick: int


class ReboundModels:
    """Follows which modules a name stands for, and looks at them when an optimizer steps."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.bound: dict[Any, Any] = {}
        self.rebindings: list[Rebinding] = []

    concerning = (ast.Call,)

    @staticmethod
    def concerned_by(statement: ast.Assign) -> bool:
        return len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name | ast.Attribute)

    def on_assigned(self, fact: Assigned) -> None:
        if not isinstance(fact.statement.value, ast.Call) or not self.concerned_by(fact.statement):
            return
        target = fact.statement.targets[0]
        value = value_of_target(self.path, target)
        if not isinstance(value, (Layer, Instance, Unknown)):
            return
        place = self.place_of(target)
        if place is None:
            return
        old = self.bound.get(place)
        if old is not value and self.path.optimizers:
            site = self.path.site(fact.statement)
            self.rebindings.append(Rebinding(ast.unparse(target), old, value, site, self.path.tick))
        self.bound[place] = value

    def place_of(self, target: ast.expr) -> Any:
        """What has the name: a running function, or an object; a module's own parts are another matter."""
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            owner = self.path.frame.namespace.get(target.value.id)
            return None if is_module(owner) else (owner, target.attr)
        return self.path.frame, getattr(target, "id", "")

    def on_stepping(self, fact: Stepping) -> None:
        if not self.rebindings:
            return
        own = set(self.path.parameters_of(fact.optimizer))
        held = {tensor for one in self.path.optimizers for tensor in self.path.ever_held_by(one)}
        for one in self.rebindings:
            before, now = own & self.parameters_before(one), self.parameters_of(one.new) - held
            is_learning = any(tensor in self.path.live_gradient_ticks for tensor in now)
            is_given_away = self.path.escaped_between(now, one.tick, self.path.tick)
            is_used_still = any(self.path.gradient_ticks.get(tensor, -1) > one.tick for tensor in before)
            if (
                before
                and is_learning
                and not (is_used_still or is_given_away)
                and fact.optimizer.created <= one.tick
            ):
                self.claims.explained.update(now)
                steps = [
                    Step("made", fact.optimizer.site or one.site, "the optimizer takes the parameters that exist here"),
                    Step("needed", fact.site, "this step does not train the new ones"),
                ]  # fmt: skip
                self.claims.add("parameters-replaced", one.site, steps, name=one.name, lazy=False)

    def parameters_before(self, one: Rebinding) -> set[Tensor]:
        """Of what a function was given, the stand-in has the name."""
        if one.old is not None:
            return self.parameters_of(one.old)
        label = f"{one.name}{PARAMETERS_OF}"
        return {
            tensor
            for each in self.path.optimizers
            for tensor in self.path.parameters_of(each)
            if tensor.label == label
        }

    def parameters_of(self, value: Any) -> set[Tensor]:
        module = self.path.module_behind(value)
        if not isinstance(module, (Layer, Instance)) or module.module is None:
            return set()
        return {tensor for _, tensor in self.path.tensors_of(module, "parameter")}
