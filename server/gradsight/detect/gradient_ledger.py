"""The ledger of gradients: what filled each `.grad`, who read it, who cleared, zeroed or masked it, and updates by hand.

*Filled*: a backward reached the leaf.  *Zeroed*: all of it was set to zero after that.  *Dropped*: set to None.
*Masked*: a part of it was set to zero.  *Assigned*: written by hand with something else.
*Update by hand*: a leaf that is written with grad mode off after its own gradient was read.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from typing import Any, Protocol

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import names_read, statement_around
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Region, Tensor, is_mask
from gradsight.model.trace import Backward, Cleared, GaveUp, GradAssigned, StandInApplied, Used, Wrote
from gradsight.model.values import (
    Function,
    Instance,
    Layer,
    Method,
    Seq,
    tensors_in,
)


class GradientRecord:
    """What is known about the `.grad` of one leaf, as of now."""

    __slots__ = ("decisions", "filled_at", "pending", "read", "scaled_at", "scaler", "site", "state")

    def __init__(self) -> None:
        self.state = ""
        self.site: Site | None = None
        """Where it came into this state."""
        self.filled_at: Site | None = None
        self.pending = False
        """Filled, and no step or update has used it since."""
        self.read = False
        """Used by an operator since it was filled or cleared."""
        self.scaled_at: Site | None = None
        """The backward of a scaled loss that filled it, until unscale_ or the scaler's step."""
        self.scaler: Any = None
        """Who scaled that loss."""
        self.decisions = 0
        """How many undecided branches the path had taken when it was filled."""


class GradientWatcher(Protocol):
    """Who wants to know what becomes of gradients."""

    def gradient_used(self, leaf: Tensor, record: GradientRecord, node: ast.AST) -> None:
        """An operator got a gradient."""

    def gradient_written(
        self, leaf: Tensor, target: Tensor, op: str, site: Site, others: list[Tensor], region: Region
    ) -> None:
        """A gradient was written by hand."""

    def parameter_moved_by_hand(self, leaf: Tensor) -> None:
        """A leaf was written with grad mode off."""


class GradientLedger:
    """Keeps the records up to date."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.watchers: list[GradientWatcher] = []
        self.records: dict[Tensor, GradientRecord] = {}
        self.all_clears: dict[Tensor, list[int]] = {}
        self.scalings: set[tuple[Tensor, int]] = set()
        """Those of them that only multiplied a gradient, or a part of it, by something."""
        self.updates: list[tuple[Tensor, Site, int]] = []
        self.used: set[Tensor] = set()
        """Parameters and other leaves to be learned that some operator was given."""

    def record_of(self, leaf: Tensor) -> GradientRecord:
        record = self.records.get(leaf)
        if record is None:
            record = self.records[leaf] = GradientRecord()
        return record

    # -- filled ------------------------------------------------------------------------------------------------------

    def on_backward(self, fact: Backward) -> None:
        run = fact.run
        for leaf in run.leaves:
            record = self.record_of(leaf)
            record.state, record.site, record.filled_at = "filled", run.site, run.site
            record.pending, record.read = True, False
            record.decisions = len(self.path.decisions)
            record.scaler, record.scaled_at = None, None

    # -- read --------------------------------------------------------------------------------------------------------

    def on_stand_in_applied(self, fact: StandInApplied) -> None:
        self.used.update(fact.parameters)

    def on_used(self, fact: Used) -> None:
        node = fact.node
        for value in fact.arguments.values():
            if type(value) is Tensor:
                if value.is_parameter or (value.requires_grad is True and value.leaf_made):
                    self.used.add(value)
                if (
                    self.records
                    and not value.is_parameter
                    and (value.source is not None or value.grad_of is not None)
                ):
                    self.note_gradient_operand(value, node)
            elif type(value) is Seq:
                for tensor in tensors_in(value) if self.records else ():
                    if tensor.source is not None or tensor.grad_of is not None:
                        self.note_gradient_operand(tensor, node)

    def on_gave_up(self, fact: GaveUp) -> None:
        if not any(isinstance(value, (Function, Method, Instance, Layer)) for value in fact.values):
            # What is given a function may run it, as a checkpoint does; what is given tensors alone computes with them.
            self.used.update(tensor for value in fact.values for tensor in tensors_in(value))

    def note_gradient_operand(self, tensor: Tensor, node: ast.AST) -> None:
        leaf = gradient_owner(tensor)
        if leaf is not None:
            record = self.record_of(leaf)
            record.read = True
            for watcher in self.watchers:
                watcher.gradient_used(leaf, record, node)

    # -- written -----------------------------------------------------------------------------------------------------

    def on_wrote(self, fact: Wrote) -> None:
        mode = fact.write.mode
        leaf = gradient_owner(fact.tensor)
        if leaf is not None:
            if fact.op != "zero_grad" and mode != "accumulate":
                self.gradient_written(leaf, fact)
                for watcher in self.watchers:
                    watcher.gradient_written(leaf, fact.tensor, fact.op, fact.site, fact.others, fact.region)
        elif self.records and mode in ("no_grad", "silent") and fact.op not in NOT_UPDATES:
            self.leaf_written(fact.tensor, fact.site)

    def gradient_written(self, leaf: Tensor, fact: Wrote) -> None:
        op, site = fact.op, fact.site
        record = self.record_of(leaf)
        if op in ("zero_", "fill_", "mul_", "copy_", "index_put_"):
            self.all_clears.setdefault(leaf, []).append(self.path.tick)
            self.path.cleared_ticks[leaf] = self.path.tick
            if op == "mul_" and not self.writes_zero(site):
                self.scalings.add((leaf, self.path.tick))
        effect = self.effect_of(op, fact.tensor, site, fact.others, fact.region)
        if effect:
            record.state, record.site = effect, site
            record.read = record.read and effect not in ("zeroed", "dropped")

    def effect_of(self, op: str, target: Tensor, site: Site, others: list[Tensor], region: Region) -> str:
        """What a write by hand makes of a gradient; empty where it merely scales or clips it."""
        whole = target.region is None and region is None and target.base is None
        if op == "zero_" or (op in ("fill_", "mul_") and not others and self.writes_zero(site)):
            return "zeroed" if whole else "masked"
        if op == "mul_":
            return "masked" if any(is_mask(tensor) for tensor in others) else ""
        if op == "masked_fill_" or (op == "index_put_" and self.writes_zero(site)):
            return "masked"
        if op in ("copy_", "add_", "sub_", "index_put_"):
            return "assigned"
        return ""

    def writes_zero(self, site: Site) -> bool:
        """Whether the statement's operand is the number zero: `grad[rows] = 0`, `grad *= 0`, `grad.mul_(0)`."""
        node = site.node
        if isinstance(node, ast.Call):
            value: Any = node.args[0] if node.args else None
        else:
            statement = node if isinstance(node, ast.AugAssign) else statement_around(node, site.frame)
            value = getattr(statement, "value", None)
        return isinstance(value, ast.Constant) and value.value in (0, 0.0) and value.value is not False

    def on_grad_assigned(self, fact: GradAssigned) -> None:
        self.all_clears.setdefault(fact.tensor, []).append(self.path.tick)
        if not fact.augmented:
            record = self.record_of(fact.tensor)
            record.state = self.effect_of_assignment(fact.value)
            record.site = self.path.site(fact.node)
            if record.state in ("dropped", "zeroed"):
                record.read, record.scaled_at = False, None

    def effect_of_assignment(self, value: Any) -> str:
        """`p.grad = None`, `p.grad = zeros_like(p.grad)`, `p.grad = p.grad * mask`."""
        if not isinstance(value, Tensor):
            return "dropped" if value is None else "assigned"
        made = value.site.node
        if value.storage.zero:
            return "zeroed"
        if (
            isinstance(made, ast.BinOp)
            and isinstance(made.op, ast.Mult)
            and value.site.frame is self.path.frame
        ):
            names = names_read(made)
            held = [self.path.frame.namespace.get(name) for name in names]
            if any(isinstance(tensor, Tensor) and is_mask(tensor) for tensor in held):
                return "masked"
        return "assigned"

    def on_cleared(self, fact: Cleared) -> None:
        for tensor in fact.tensors:
            self.all_clears.setdefault(tensor, []).append(self.path.tick)
            record = self.records.get(tensor)
            if record is not None:
                record.state, record.site = "zeroed" if fact.in_place else "dropped", fact.site
                record.read, record.scaled_at = False, None

    def was_cleared(self, parameter: Tensor, start: int, end: int) -> bool:
        ticks = self.all_clears.get(parameter, [])
        place = bisect_left(ticks, start)
        return place < len(ticks) and ticks[place] <= end

    def was_only_scaled(self, parameter: Tensor, start: int, end: int) -> bool:
        """Whether what was done to a gradient in that time, short of being cleared, was to multiply it."""
        ticks = self.all_clears.get(parameter, [])
        within = ticks[bisect_left(ticks, start) : bisect_right(ticks, end)]
        return bool(within) and all((parameter, tick) in self.scalings for tick in within)

    # -- updates by hand ---------------------------------------------------------------------------------------------

    def leaf_written(self, target: Tensor, site: Site) -> None:
        leaf = target
        while leaf.snapshot in ("data", "detach") and leaf.source is not None:
            leaf = leaf.source
        record = self.records.get(leaf)
        if record is None or not leaf.is_leaf or leaf.requires_grad is not True:
            return
        for watcher in self.watchers:
            watcher.parameter_moved_by_hand(leaf)
        if not record.read:
            return
        if record.state == "zeroed" and record.pending and record.filled_at is not None:
            self.cleared_too_early(record, site)
        self.updates.append((leaf, site, self.path.tick))
        record.pending = False

    def place_of_order(self, cleared: Site, filled: Site, needed: Site) -> Site:
        """A wrapper around `zero_grad` clears for whoever calls it: the order is that of the function with the backward."""
        around = cleared.frame.call_site
        outer = self.path.outermost(cleared, filled)
        is_wrapper = around is not None and around.frame is outer.frame and needed.frame is not cleared.frame
        return outer if is_wrapper else cleared

    def cleared_too_early(self, record: GradientRecord, needed: Site) -> None:
        """The gradient was there and is gone when it is to be applied; a clear under a condition of its own is meant."""
        place, filled = record.site, record.filled_at
        if place is None or filled is None or set(place.guards) - set(needed.guards):
            return
        cleared = self.place_of_order(place, filled, needed)
        if is_ahead_of_backward(needed, filled):
            self.claims.add(
                "cleared-before-step",
                needed,
                [
                    Step("made", filled, "the gradients are computed here"),
                    Step("written", cleared, "and are cleared here before the next step"),
                    *self.path.call_steps(needed),
                ],
                is_step_first=True,
            )
            return
        self.claims.add(
            "cleared-before-step",
            cleared,
            [
                Step("made", filled, "the gradients are computed here"),
                Step("needed", needed, "this step has nothing to apply"),
                *self.path.call_steps(place),
            ],
        )


NOT_UPDATES = {"load_state_dict", "optimizer step", "reset_parameters", "zero_grad"}


def is_ahead_of_backward(step: Site, backward: Site) -> bool:
    """Whether a step belongs to a later round of the loop around both: in one round it comes first, and the backward after it."""
    rounds = dict(step.loops)
    shared = [(rounds[run], number) for run, number in backward.loops if run in rounds]
    return bool(shared) and shared[-1][0] > shared[-1][1]


def gradient_owner(tensor: Tensor | None) -> Tensor | None:
    """The leaf whose `.grad` this is, or an alias of it."""
    steps = 0
    while tensor is not None and steps < 8:
        if tensor.grad_of is not None:
            return tensor.grad_of
        tensor = tensor.source
        steps += 1
    return None
