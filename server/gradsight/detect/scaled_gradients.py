"""Gradient scalers: a gradient that is clipped, measured or edited while it is still scaled, or that never was."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_flow import LINEAR
from gradsight.detect.gradient_ledger import GradientLedger, GradientRecord
from gradsight.detect.passed_arms import arm, said_in
from gradsight.detect.path import Path
from gradsight.interp.path_state import Arm
from gradsight.interp.syntax import called_attribute, remembered
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.library_objects import GradientScaler, Optimizer
from gradsight.model.name_hints import suggests
from gradsight.model.sites import Site
from gradsight.model.tensors import Node, Region, Tensor
from gradsight.model.trace import Backward, Scaled, ScalerStepping, Stepping

INDIFFERENT = {
    "allclose",
    "equal",
    "isclose",
    "isfinite",
    "isnan",
    "isinf",
    "clone",
    "detach",
    "zeros_like",
    "empty_like",
    "ones_like",
    "sign",
}
"""What asks a gradient about something that scaling does not change, or only passes it on."""
REPLACING = {"zero_", "fill_", "copy_", "index_put_", "masked_fill_"}
"""Writes that do not depend on how large the gradient is."""
STEPPED_BY_SCALER = tuple(f".step({name}" for name in ("opt", "self.opt", "self._opt", "self.model.opt"))
"""How a text lets a scaler step."""


class ScaledGradients:
    """torch.amp.GradScaler."""

    def __init__(self, path: Path, claims: Claims, ledger: GradientLedger) -> None:
        self.path = path
        self.claims = claims
        self.ledger = ledger
        ledger.watchers.append(self)
        self.scaled_nodes: dict[Node, GradientScaler] = {}
        """What scalers made, and which."""
        self.stepping: Optimizer | None = None
        """The optimizer that a scaler lets step."""
        self.unscaled_at: dict[tuple[int, int], Site] = {}
        """Where scalers unscaled the gradients of an optimizer since their last update."""
        self.not_updated: dict[tuple[int, int], Site] = {}
        """Steps of scalers, with the optimizer, that no update has followed yet."""
        self.at_work: set[int] = set()
        """Scalers that have scaled something."""
        self.scaled_unknown: set[int] = set()
        """Those that have scaled something of which the graph is not known: its backward is not seen to be of that."""

    def on_scaled(self, fact: Scaled) -> None:
        result = fact.result
        if fact.method == "scale":
            self.at_work.add(id(fact.scaler))
            if not isinstance(result, Tensor) or result.node is None:
                self.scaled_unknown.add(id(fact.scaler))
            elif self.may_ever_scale(fact.scaler):
                self.scaled_nodes[result.node] = fact.scaler
        elif fact.method in ("unscale_", "step") and fact.arguments:
            if fact.method == "unscale_":
                self.check_unscaled_once(fact)
                self.check_was_scaled(fact.scaler, fact.arguments[0], self.path.site(self.path.node))
            self.unscaled(fact.arguments[0])
            self.stepping = None
        elif fact.method == "update":
            self.unscaled_at = {
                pair: site for pair, site in self.unscaled_at.items() if pair[0] != id(fact.scaler)
            }
            self.not_updated = {
                pair: site for pair, site in self.not_updated.items() if pair[0] != id(fact.scaler)
            }

    def check_unscaled_once(self, fact: Scaled) -> None:
        """Torch refuses to unscale the gradients of one optimizer twice between two updates."""
        scaler, optimizer = fact.scaler, fact.arguments[0]
        site, pair = self.path.site(self.path.node), (id(scaler), id(optimizer))
        enabled = self.path.truth(scaler.enabled)
        if enabled is False or scaler.escaped or not isinstance(optimizer, Optimizer):
            return
        before = self.unscaled_at.get(pair) or self.not_updated.get(pair)
        if before is not None:
            assumption = "" if enabled else "the gradient scaler is enabled"
            words = "they were unscaled here" if pair in self.unscaled_at else "the step was here"
            steps = [Step("call", before, words)] if before.key != site.key else []
            self.claims.add(
                "scaler-misused", site, [*steps, *self.path.call_steps(site)], assumption, how="unscale"
            )
        self.unscaled_at[pair] = site

    def check_was_scaled(self, scaler: GradientScaler, optimizer: Any, site: Site) -> None:
        """A scaler divides by its scale whatever gradients it finds; one that has scaled nothing yet has no scale."""
        enabled = self.path.truth(scaler.enabled)
        if enabled is False or scaler.escaped or not isinstance(optimizer, Optimizer) or optimizer.escaped:
            return
        pair = (id(scaler), id(optimizer))
        if id(scaler) in self.scaled_unknown:
            return
        if pair in self.unscaled_at and self.unscaled_at[pair].key != site.key:
            return
        records = [
            record
            for leaf in self.path.parameters_of(optimizer)
            if (record := self.ledger.records.get(leaf)) is not None and record.state == "filled"
        ]
        filled = records[-1].filled_at if records else None
        if filled is None and self.has_nothing(scaler, optimizer):
            assumption = "" if enabled else "the gradient scaler is enabled"
            self.claims.add("scaler-misused", site, self.path.call_steps(site), assumption, how="nothing")
        if filled is None or self.path.gradients_unknown or any(one.scaler is not None for one in records):
            return
        if any(may_scale_instead(turn) for one in self.path.decisions for turn in one.turns):
            return
        made = scaler.site.node if scaler.site is not None else None
        is_new = isinstance(made, ast.Call) and not self.path.has_receiver and id(scaler) not in self.at_work
        self.claims.add(
            "scaler-misused",
            site,
            [
                Step("made", filled, "the gradients are computed here, and not scaled"),
                *self.path.call_steps(site),
            ],
            "" if enabled else "the gradient scaler is enabled",
            how="refused" if is_new else "unscaled",
        )

    def has_nothing(self, scaler: GradientScaler, optimizer: Optimizer) -> bool:
        """Whether no parameter of an optimizer has a gradient, though the scaler was at work: torch refuses the step.

        Where something else was found before, that is the reason.
        """
        if id(scaler) not in self.at_work or self.path.has_receiver or self.path.gradients_unknown:
            return False
        if self.claims.events:
            return False
        if not self.path.knows_all_parameters(optimizer):
            return False
        leaves = self.path.parameters_of(optimizer)
        records = [self.ledger.records.get(leaf) for leaf in leaves]
        return bool(leaves) and all(one is None or one.state in ("", "dropped") for one in records)

    def on_scaler_stepping(self, fact: ScalerStepping) -> None:
        self.stepping = fact.optimizer
        self.check_was_scaled(fact.scaler, fact.optimizer, fact.site)
        scaler, pair = fact.scaler, (id(fact.scaler), id(fact.optimizer))
        enabled = self.path.truth(scaler.enabled) is True
        if scaler.escaped or not self.is_at_work(scaler, fact.site, f"{receiver_of(fact.site)}.update("):
            return
        before = self.not_updated.get(pair)
        if before is not None and not is_another_each_round(fact.site):
            assumption = "" if enabled else "the gradient scaler is enabled"
            steps = (
                [Step("call", before, "the earlier `scaler.step` is here")]
                if before.key != fact.site.key
                else []
            )
            self.claims.add("scaler-misused", fact.site, steps, assumption, how="update")
        self.not_updated[pair] = fact.site

    def on_stepping(self, fact: Stepping) -> None:
        if fact.optimizer is self.stepping or fact.optimizer.escaped:
            return
        for parameter in self.path.parameters_of(fact.optimizer):
            record = self.ledger.records.get(parameter)
            if record is None or record.scaled_at is None:
                continue
            if not self.is_at_work(record.scaler, fact.site, *STEPPED_BY_SCALER):
                continue
            if not record.scaler.escaped and not self.path.gradients_unknown:
                steps = [Step("made", record.scaled_at, "the scaled gradients are computed here")]
                self.claims.add("scaler-misused", fact.site, steps, how="step")
            return

    def on_backward(self, fact: Backward) -> None:
        """Runs after the ledger has noted what the backward filled."""
        scaler = self.scaler_of(fact.run.loss)
        if scaler is not None:
            for leaf in fact.run.leaves:
                record = self.ledger.record_of(leaf)
                record.scaler, record.scaled_at = scaler, fact.run.site

    def unscaled(self, optimizer: Any) -> None:
        """What no optimizer is seen to hold may be held by this one."""
        is_known = isinstance(optimizer, Optimizer) and self.path.knows_all_parameters(optimizer)
        others = {
            leaf
            for one in self.path.optimizers
            if is_known and one is not optimizer
            for leaf in self.path.parameters_of(one)
        }
        own = set(self.path.parameters_of(optimizer)) if is_known else set()
        for leaf, record in self.ledger.records.items():
            if leaf in own or leaf not in others:
                record.scaled_at = None

    def may_scale(self, scaler: GradientScaler) -> bool:
        """A scaler that is not enabled does nothing; where that hangs on a flag, the path may have decided it since."""
        return self.path.truth(scaler.enabled) is not False

    def may_ever_scale(self, scaler: GradientScaler) -> bool:
        """Whether a scaler does something, or would if a flag were set: `GradScaler(enabled=args.amp)`."""
        call = scaler.site.node if scaler.site is not None else None
        return self.may_scale(scaler) or (
            isinstance(call, ast.Call)
            and any(one.arg == "enabled" and not isinstance(one.value, ast.Constant) for one in call.keywords)
        )

    def is_at_work(self, scaler: GradientScaler, site: Site, *calls: str) -> bool:
        """Whether a scaler is on; one that a flag switches off would lack these calls in every run if no text has them."""
        if self.may_scale(scaler):
            return True
        units = [one.frame.unit for one in (site, *site.callers())]
        return self.may_ever_scale(scaler) and not any(call in unit.text for unit in units for call in calls)

    def scaler_of(self, loss: Tensor) -> GradientScaler | None:
        """Who scaled the loss, which may have been divided or summed since."""
        node = loss.node
        todo = [node] if node is not None and self.scaled_nodes else []
        seen: set[Node] = set()
        while todo:
            current = todo.pop()
            if current in self.scaled_nodes:
                return self.scaled_nodes[current]
            if current not in seen and current.op in LINEAR:
                seen.add(current)
                todo.extend(edge for edge in current.inputs if isinstance(edge, Node))
        return None

    def gradient_used(self, leaf: Tensor, record: GradientRecord, node: ast.AST) -> None:
        if record.scaled_at is None or isinstance(node, (ast.Compare, ast.AugAssign)):
            return
        name = called_attribute(node)
        if name in INDIFFERENT or name.endswith("_"):
            return
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
            return
        self.scaled_gradient(record, self.path.site(node))

    def gradient_written(
        self, leaf: Tensor, target: Tensor, op: str, site: Site, others: list[Tensor], region: Region
    ) -> None:
        record = self.ledger.record_of(leaf)
        if record.scaled_at is None or op in REPLACING:
            return
        if op in ("mul_", "div_"):
            # A factor commutes with unscaling; one that is computed may be the inverse of the scale.
            if not self.has_literal_operand(site) and all(tensor.shape in ((), None) for tensor in others):
                record.scaled_at = None
            return
        self.scaled_gradient(record, site)

    def parameter_moved_by_hand(self, leaf: Tensor) -> None:
        """Says nothing about the scale."""

    def has_literal_operand(self, site: Site) -> bool:
        node = site.node
        value: Any = node.value if isinstance(node, ast.AugAssign) else None
        if isinstance(node, ast.Call) and node.args:
            value = node.args[0]
        return isinstance(value, ast.Constant)

    def scaled_gradient(self, record: GradientRecord, site: Site) -> None:
        if record.scaled_at is not None and self.is_at_work(record.scaler, site, "unscale_("):
            steps = [Step("made", record.scaled_at, "the scaled gradients are computed here")]
            # Where nothing was undecided, the program as it stands does not scale.
            is_certain = self.may_scale(record.scaler) or bool(self.path.decisions)
            assumption = "" if is_certain else "the gradient scaler is enabled"
            self.claims.add("scaled-gradients-used", site, [*steps, *self.path.call_steps(site)], assumption)


def may_scale_instead(turn: Arm) -> bool:
    """Whether the arm that a path went past may scale: it names a scaler, or differentiates in its own way."""
    node, outcome = turn
    return any(
        suggests("scaling", word)
        for part in arm(node, not outcome)
        for word in remembered(part, "said", said_in)
    )


def receiver_of(site: Site) -> str:
    """How the text names what a method is called on."""
    called = getattr(site.node, "func", None)
    return ast.unparse(called.value) if isinstance(called, ast.Attribute) else ""


def is_another_each_round(site: Site) -> bool:
    """Whether a loop goes over the optimizers: `for name, optimizer in optimizers.items(): scaler.step(optimizer)`."""
    call = site.node
    given = call.args[0] if isinstance(call, ast.Call) and call.args else None
    targets = [run.node.target for run, _ in site.loops if isinstance(run.node, (ast.For, ast.AsyncFor))]
    return isinstance(given, ast.Name) and any(
        isinstance(part, ast.Name) and part.id == given.id
        for target in targets
        for part in syntax_parts(target)
    )
