"""Optimizers that a loop makes again in every iteration, for the same parameters, and steps once.

The averages that Adam or momentum keep begin again each time.  Whoever puts the parameters back to where they were as well
begins anew on purpose, and an optimizer that keeps nothing has nothing to lose.
"""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.idle_optimizers import name_of
from gradsight.detect.path import Path
from gradsight.detect.untrained_parameters import leaf_behind
from gradsight.interp.paths.roles import key_of, last_part
from gradsight.interp.syntax import conditions_around
from gradsight.interp.syntax_parts import parts_of
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Copied, DataAssigned, StateLoaded, Wrote
from gradsight.model.values import tensors_in
from gradsight.ops.traits import having

KIND = "optimizer-made-again"
REMEMBERING = having("goes-by-earlier-steps")
"""Optimizers whose step depends on earlier gradients."""
FEWEST = 2


class RemadeOptimizers:
    """Looks for them when a path is over."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.put_back: set[Tensor] = set()
        """Parameters that were given other values than those of a step."""

    def on_state_loaded(self, fact: StateLoaded) -> None:
        self.put_back.update(tensor for _, tensor in self.path.tensors_of(fact.module, "parameter"))

    def on_copied(self, fact: Copied) -> None:
        self.put_back.update(tensor for tensor in tensors_in(fact.result) if tensor.is_parameter)

    def on_data_assigned(self, fact: DataAssigned) -> None:
        self.put_back.add(fact.tensor)

    def on_wrote(self, fact: Wrote) -> None:
        if fact.write.mode in ("no_grad", "silent") and fact.site.loops:
            leaf = leaf_behind(fact.tensor)
            if leaf is not None and leaf.is_parameter:
                self.put_back.add(leaf)

    def finish(self) -> None:
        if self.path.ended_early:
            return
        made: dict[object, list[tuple[Optimizer, Site]]] = {}
        for optimizer in self.path.optimizers:
            place = place_in_loop(optimizer) if keeps_averages(optimizer) else None
            if place is not None:
                made.setdefault(place.key, []).append((optimizer, place))
        for pairs in made.values():
            optimizers = [optimizer for optimizer, _ in pairs]
            first, site = pairs[0]
            own = first.ever_held()
            if len(optimizers) < FEWEST or not own or own & self.put_back:
                continue
            if any(one.stepped != 1 or one.escaped or one.ever_held() != own for one in optimizers):
                continue
            step = next(
                (action for action in self.path.log if action.verb == "step" and action.subject is first),
                None,
            )
            name = name_of(site)
            if step is None or is_restored(name, site) or self.may_be_made_once(site):
                continue
            steps = [Step("needed", step.site, "its only step, without the averages of earlier ones")]
            if first.site is not None and first.site is not site:
                steps.insert(0, Step("made", first.site, "it is made here"))
            self.claims.add(KIND, site, steps, optimizer=name, made=last_part(first.path))

    def may_be_made_once(self, site: Site) -> bool:
        """Whether it is made under a condition on what the path does not know: `if rounds == 0`."""
        around = conditions_around(site.node, site.frame)
        return any(one.node in around for one in self.path.decisions)


def place_in_loop(optimizer: Optimizer) -> Site | None:
    """Where a loop gives a name to an optimizer that it makes, be it by a function that it calls."""
    site = optimizer.site
    places = [] if site is None or not site.loops else [site, *site.callers()]
    return next((one for one in places if one.loops and name_of(one)), None)


def keeps_averages(optimizer: Optimizer) -> bool:
    name = last_part(optimizer.path)
    momentum = optimizer.options.get("momentum")
    return name in REMEMBERING or (name == "SGD" and isinstance(momentum, (int, float)) and momentum > 0)


def is_restored(name: str, site: Site) -> bool:
    """Whether the text loads the state of an optimizer of this name."""
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "load_state_dict"
        and last_part(key_of(call.func.value)) == name
        for statement in site.unit.tree
        for call in parts_of(statement, ast.Call)
    )
