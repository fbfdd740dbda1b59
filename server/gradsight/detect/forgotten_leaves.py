"""Plain tensors that were made to be trained and that no optimizer moves: `params = [w1, w2]`, and `v1` is forgotten.

A tensor with `requires_grad=True` may also be an input whose gradient is wanted: then somebody reads it, or moves the tensor by
hand.  One that backwards reach round after round, while a step follows each, and that nobody touches is forgotten.
"""

from __future__ import annotations

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import (
    DataAssigned,
    Declared,
    Frozen,
    GaveUp,
    GradAssigned,
    GradRead,
    GradRequested,
    Wrote,
)
from gradsight.model.values import tensors_in

KIND = "parameters-not-optimized"


class ForgottenLeaves:
    """Compares what was declared with what optimizers hold, when a path is over."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.declared: dict[Tensor, Site] = {}
        self.used: set[Tensor] = set()
        """Leaves whose gradient, or whose value, somebody has another use for."""

    def on_declared(self, fact: Declared) -> None:
        if not fact.site.frame.unit.library:
            self.declared[fact.tensor] = fact.site

    def on_grad_read(self, fact: GradRead) -> None:
        self.used.add(fact.tensor)

    def on_grad_requested(self, fact: GradRequested) -> None:
        self.used.add(fact.wanted)

    def on_grad_assigned(self, fact: GradAssigned) -> None:
        self.used.add(fact.tensor)

    def on_data_assigned(self, fact: DataAssigned) -> None:
        self.used.add(fact.tensor)

    def on_frozen(self, fact: Frozen) -> None:
        self.used.add(fact.tensor)

    def on_wrote(self, fact: Wrote) -> None:
        if fact.write.mode in ("no_grad", "silent"):
            storage = fact.tensor.storage
            self.used.update(leaf for leaf in self.declared if leaf.storage is storage)

    def on_gave_up(self, fact: GaveUp) -> None:
        for value in fact.values if self.declared else ():
            self.used.update(tensors_in(value))

    def finish(self) -> None:
        path = self.path
        waiting = [
            leaf
            for leaf in self.declared
            if leaf not in self.used and not leaf.is_parameter and leaf.requires_grad is True and leaf.is_leaf
        ]
        optimizers = path.optimizers
        if not waiting or not optimizers or path.gradients_unknown or path.gradients_hooked:
            return
        if path.ended_at is not None or not all(self.is_known(one) for one in optimizers):
            return
        held = {leaf for one in optimizers for leaf in path.ever_held_by(one)}
        has_kin = any(leaf.is_leaf and not leaf.is_parameter for leaf in held)
        for leaf in waiting:
            # A sample whose flag is on is none of the weights; a single number, or what is like the weights, is.
            if (has_kin or leaf.shape in ((), (1,))) and leaf not in held | self.claims.explained:
                self.conclude(leaf, held)

    def is_known(self, optimizer: Optimizer) -> bool:
        return not optimizer.escaped and not optimizer.extended and self.path.knows_all_parameters(optimizer)

    def conclude(self, leaf: Tensor, held: set[Tensor]) -> None:
        """It is enough that two backwards reach it, each with what a step moves then."""
        rounds, run, last, optimizer = 0, None, None, None
        for action in self.path.log:
            if action.verb == "backward" and leaf in action.leaves and held.intersection(action.leaves):
                run = action.subject
            elif action.verb == "step" and run is not None and isinstance(action.subject, Optimizer):
                if run.leaves & self.path.ever_held_by(action.subject):
                    rounds, optimizer, last, run = rounds + 1, action.subject, run, None
        if rounds < 2 or last is None or optimizer is None or optimizer.site is None:
            return
        steps = [
            Step("made", self.declared[leaf], "it was made to be trained here"),
            Step("call", last.site, "this backward computes its gradient"),
        ]
        self.claims.add(KIND, optimizer.site, steps, parameters=leaf.label, count=1, how="leaf")
