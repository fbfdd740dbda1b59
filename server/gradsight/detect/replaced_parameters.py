"""Parameters that came into a model after its optimizer was made, so that no step moves them."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import remembered, statement_around
from gradsight.interp.syntax_parts import parts_of
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.name_hints import suggests
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import (
    AttributeSet,
    ChildrenChanged,
    ChildrenChanging,
    Copied,
    GaveUp,
    LayerMade,
    Stepping,
)
from gradsight.model.values import MISSING, Instance, Layer, tensors_in

GRADIENTS = ("grad", "_grad")
"""Two names of one slot."""


class LateParameter(NamedTuple):
    """Parameters that came to a module of which an optimizer holds others."""

    optimizer: Optimizer
    place: Site
    fresh: list[Tensor]
    name: str
    lazy: bool
    owner: Any
    """The module; None where a container was changed."""


class ReplacedParameters:
    """Old parameters in the optimizer, new ones in the model."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.replacements: list[LateParameter] = []
        self.retired: set[Tensor] = set()
        """Parameters that gave their place in a module to others."""
        self.made_at: dict[Tensor, tuple[int, Site]] = {}
        """When and where the parameters of layers came to be."""
        self.before_change: list[Tensor] = []
        """The parameters of a container of modules that is being changed."""
        self.handed_over: dict[Any, int] = {}
        """Modules that code which is not known was given, and when first: it may have called them."""
        self.maybe_frozen: set[Tensor] = set()
        """Parameters that code which is not known was given to switch off their gradients."""
        self.maybe_earlier: set[Tensor] = set()
        """Parameters that such a call may have made before the optimizer was."""

    def on_attribute_set(self, fact: AttributeSet) -> None:
        owner, name, value, old, node = fact.owner, fact.name, fact.value, fact.old, fact.node
        if old is not MISSING:
            self.retired.update(self.parameters_in(old))
        if self.retired:
            self.retired.difference_update(self.parameters_in(value))
        if not self.path.optimizers or old is value:
            return
        lazy = old is None or old is MISSING
        if lazy and self.path.frame.function is not None and self.path.frame.function.name == "__init__":
            return
        gone = (
            [tensor for _, tensor in self.path.tensors_of(owner, "parameter")]
            if lazy
            else self.parameters_in(old)
        )
        since = self.handed_over.get(owner) if lazy else None
        self.parameters_arrived(self.parameters_in(value), gone, name, lazy, node, since, owner)

    def on_gave_up(self, fact: GaveUp) -> None:
        for value in fact.values:
            if isinstance(value, (Layer, Instance)) and value.module is not None:
                for _, inner in self.path.modules_in(value):
                    self.handed_over.setdefault(inner, self.path.tick)
                if suggests("freezes", fact.reason):
                    self.maybe_frozen.update(self.parameters_in(value))

    def on_children_changing(self, fact: ChildrenChanging) -> None:
        self.before_change = (
            [tensor for _, tensor in self.path.tensors_of(fact.module, "parameter")]
            if self.path.optimizers
            else []
        )

    def on_children_changed(self, fact: ChildrenChanged) -> None:
        before, node = self.before_change, fact.node
        if before:
            after = [tensor for _, tensor in self.path.tensors_of(fact.module, "parameter")]
            fresh = [tensor for tensor in after if not any(tensor is known for known in before)]
            self.parameters_arrived(fresh, before, self.path.text_of_target(self.path.site(node)), True, node)

    def parameters_arrived(
        self,
        fresh: list[Tensor],
        gone: list[Tensor],
        name: str,
        lazy: bool,
        node: ast.AST,
        since: int | None = None,
        owner: Any = None,
    ) -> None:
        """Parameters that join or replace some that an optimizer holds; those made of a graph are another fault.

        What is made by the first call may be there already where unknown code had the module (`since`) before the optimizer.
        """
        fresh = [tensor for tensor in fresh if not any(cut.kind == "parameter" for cut in tensor.cuts)]
        for optimizer in self.path.optimizers if fresh else []:
            held = set(self.path.parameters_of(optimizer))
            if since is not None and since <= optimizer.created:
                self.maybe_earlier.update(fresh)
                continue
            if any(tensor in held for tensor in gone):
                # What wraps old parameters adds to them and replaces none of them.
                new = [tensor for tensor in fresh if tensor not in held]
                wraps = len(new) < len(fresh)
                if new:
                    place = self.path.site(node)
                    self.replacements.append(LateParameter(optimizer, place, new, name, lazy or wraps, owner))

    def parameters_in(self, value: Any) -> list[Tensor]:
        if isinstance(value, (Layer, Instance)) and value.module is not None:
            return [tensor for _, tensor in self.path.tensors_of(value, "parameter")]
        return (
            [tensor for tensor in tensors_in(value) if tensor.is_parameter]
            if isinstance(value, Tensor)
            else []
        )

    def on_stepping(self, fact: Stepping) -> None:
        optimizer, site = fact.optimizer, fact.site
        if self.replacements:
            held = {tensor for other in self.path.optimizers for tensor in self.path.parameters_of(other)}
            for arrived in self.replacements:
                fresh = arrived.fresh
                if (
                    arrived.optimizer is not optimizer
                    or any(tensor in held for tensor in fresh)
                    or self.retired.issuperset(fresh)
                    # Of a loop that freezes them all, some rounds are executed.
                    or any(one.requires_grad is False or one in self.maybe_frozen for one in fresh)
                    or (arrived.lazy and getattr(arrived.owner, "open", False))
                ):
                    # Who makes a module to its end may make another optimizer for what came late.
                    continue
                if arrived.lazy and not any(tensor in self.path.live_gradient_ticks for tensor in fresh):
                    continue
                self.claims.explained.update(fresh)
                self.parameters_not_held(optimizer, arrived.place, site, arrived.name, arrived.lazy)

    def parameters_not_held(
        self, optimizer: Optimizer, place: Site, step: Site, name: str, lazy: bool
    ) -> None:
        self.claims.add(
            "parameters-replaced",
            place,
            [
                Step("made", optimizer.site or place, "the optimizer takes the parameters that exist here"),
                Step("needed", step, "this step does not train the new ones"),
                *self.path.call_steps(place),
            ],
            name=name,
            lazy=lazy,
        )

    # -- a model made, or copied, after its optimizer ----------------------------------------------------------------

    def on_layer_made(self, fact: LayerMade) -> None:
        made = (self.path.tick, self.path.site(fact.node))
        for tensor in fact.layer.attributes.values():
            if type(tensor) is Tensor and tensor.is_parameter:
                self.made_at[tensor] = made

    def on_copied(self, fact: Copied) -> None:
        for tensor in self.parameters_in(fact.result):
            self.made_at[tensor] = (self.path.tick, self.path.site(fact.node))

    def trained_instead(self, optimizer: Optimizer) -> Site | None:
        """Where the parameters were made that the backwards reach, if all of them came after the optimizer."""
        if any(remembered(part, "gives_gradients", gives_gradients) for part in self.path.executed):
            # Workers hand their gradients to the model that they share.
            return None
        places: list[tuple[int, Site]] = []
        held = {tensor for other in self.path.optimizers for tensor in self.path.ever_held_by(other)}
        for run in self.path.backwards:
            for leaf in run.leaves:
                if not leaf.is_parameter:
                    continue
                tick, place = self.made_at.get(leaf, (-1, None))
                if leaf in held or place is None or tick < optimizer.created:
                    return None
                places.append((tick, place))
        if not places:
            return None
        return where_it_is_kept(min(places, key=lambda made: (made[0], made[1].line))[1])

    def name_bound_at(self, site: Site) -> str:
        """The name that the statement around a place binds."""
        statement = statement_around(site.node, site.frame)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(statement, ast.Assign) and isinstance(target, ast.Tuple):
            # `actor, critic = Actor(), Critic()`
            values = statement.value.elts if isinstance(statement.value, ast.Tuple) else []
            pairs = zip(target.elts, values) if len(values) == len(target.elts) else ()
            target = next((one for one, value in pairs if site.node in ast.walk(value)), None)
        return ast.unparse(target) if target is not None else "the model"


def gives_gradients(function: ast.AST) -> bool:
    """Whether a text sets the gradients of something: `shared.grad = own.grad`."""
    return any(
        isinstance(part, ast.Attribute) and part.attr in GRADIENTS and isinstance(part.ctx, ast.Store)
        for part in parts_of(function, ast.Attribute)
    )


def where_it_is_kept(place: Site) -> Site:
    """Out of the constructor that a layer is made in, and of functions that return what they make."""
    while place.frame.call_site is not None:
        function = place.frame.function
        makes = function is not None and function.name == "__init__"
        if not makes and not isinstance(statement_around(place.node, place.frame), ast.Return):
            break
        place = place.frame.call_site
    return place
