"""Gradients that are to be summed over several backwards, and are cleared before each of them.

*Rhythm*: `if (i + 1) % n == 0: optimizer.step()`, also by a method or function that steps.  *Inner clear*: a loop clears in
each of its rounds what the last one computed, and the step comes after the loop.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_ledger import GradientLedger
from gradsight.detect.path import Path
from gradsight.detect.phases import makes_room_for_another_loss
from gradsight.interp.syntax import called_attribute
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Clearing, Stepping
from gradsight.model.values import ClassValue, Function, Scope


class ClearedAccumulation:
    """Looks at every clear, and at every step after one."""

    def __init__(self, path: Path, claims: Claims, ledger: GradientLedger) -> None:
        self.path = path
        self.claims = claims
        self.ledger = ledger
        self.inner_clears: dict[Tensor, tuple[Site, Site, Any]] = {}
        """Gradients that a loop cleared in a round after the one that computed them: the clear, the backward, the loop."""
        self.dropped: dict[Tensor, tuple[Site, Site]] = {}
        """Gradients that were cleared before anything used them, as long as no step has had one: the clear, the backward."""
        self.applied: set[Tensor] = set()
        self.passed_by: set[Tensor] = set()
        """Parameters whose gradient was dropped, and then their optimizer stepped without one."""

    def on_stepping(self, fact: Stepping) -> None:
        self.check_inner_clears(fact.optimizer, fact.site)
        for parameter in self.path.parameters_of(fact.optimizer):
            record = self.ledger.records.get(parameter)
            if record is not None and record.state not in ("zeroed", "dropped"):
                self.applied.add(parameter)
            elif parameter in self.dropped:
                self.passed_by.add(parameter)

    def finish(self) -> None:
        """A part of a network whose gradients are dropped each time, while the rest of its optimizer's parameters move."""
        if self.path.gradients_unknown or self.path.ended_early or self.path.truncated:
            return
        for parameter in self.passed_by - self.applied:
            cleared, filled = self.dropped[parameter]
            held = [self.path.parameters_of(one) for one in self.path.optimizers]
            if any(parameter in group and self.applied & set(group) for group in held):
                steps = [
                    Step("made", filled, "the gradients are computed here"),
                    *self.path.call_steps(cleared),
                ]
                self.claims.add("cleared-before-step", cleared, steps, of_a_part=True)
                return

    def on_clearing(self, fact: Clearing) -> None:
        """Gradient accumulation that clears in every round: what was computed is dropped before the step that sums it."""
        tensors, site = fact.tensors, fact.site
        for tensor in tensors:
            record = self.ledger.records.get(tensor)
            if record is not None and record.pending and record.state == "filled" and not record.read:
                if record.filled_at is not None:
                    self.dropped.setdefault(tensor, (site, record.filled_at))
        if not site.loops or self.path.gradients_unknown:
            return
        run, _ = site.loops[-1]
        for tensor in tensors:
            record = self.ledger.records.get(tensor)
            if record is None or not record.pending or record.state != "filled":
                continue
            filled = record.filled_at
            if filled is None or not all(
                steps_in_rhythm(one.node, site.frame) for one in self.path.decisions[record.decisions :]
            ):
                continue
            if run not in dict(filled.loops) or makes_room_for_another_loss(site, filled):
                continue
            if not self.steps_sometimes(run.node, site):
                if record.read:
                    # Who reads a gradient before it is cleared collects it.
                    continue
                self.inner_clears.setdefault(tensor, (site, filled, run))
                continue
            if not any(tensor in self.path.parameters_of(one) for one in self.path.optimizers):
                continue
            if self.steps_in_round(tensor, run, dict(filled.loops)[run]):
                # Another network's loss came through after its own step: that gradient is meant to be dropped.
                continue
            others = [
                self.ledger.records[leaf]
                for leaf in self.leaves_filled_at(filled)
                if leaf in self.ledger.records
            ]
            if all(other.pending and not other.read for other in others):
                self.claims.add(
                    "cleared-before-step",
                    site,
                    [
                        Step("made", filled, "the gradients are computed here"),
                    ],
                    accumulating=True,
                )
            return

    def check_inner_clears(self, optimizer: Optimizer, site: Site) -> None:
        """An inner loop cleared what each of its rounds computed, and the step comes after the loop: it gets the last round."""
        for parameter in self.path.parameters_of(optimizer) if self.inner_clears else ():
            place, filled, run = self.inner_clears.pop(parameter, (None, None, None))
            record = self.ledger.records.get(parameter)
            if place is None or filled is None or record is None or run in dict(site.loops):
                continue
            if record.state != "filled" or record.filled_at is None:
                continue
            if record.filled_at.key == filled.key and not self.path.gradients_unknown:
                steps = [
                    Step("made", filled, "the gradient is computed here"),
                    Step("needed", site, "the step comes after the loop"),
                ]
                self.claims.add("cleared-before-step", place, steps, accumulating=True)

    def leaves_filled_at(self, site: Site) -> list[Tensor]:
        return [leaf for run in self.path.backwards if run.site is site for leaf in run.leaves]

    def steps_in_round(self, tensor: Tensor, run: Any, number: int) -> bool:
        """Whether an optimizer that holds a parameter stepped in this round of a loop."""
        return any(
            action.verb == "step"
            and dict(action.loops).get(run) == number
            and tensor in self.path.parameters_of(action.subject)
            for action in self.path.log
        )

    def steps_sometimes(self, loop: ast.AST, site: Site) -> bool:
        """Whether the loop steps only every so many rounds: `if (i + 1) % n == 0: optimizer.step()`.

        What a loop inside it does in its own rhythm, it does in each round of the loop.
        """
        function = site.frame.function
        texts = [loop] if function is None else [loop, function.node]
        nested = {
            part
            for inner in syntax_parts(loop)
            if inner is not loop and isinstance(inner, (ast.For, ast.AsyncFor, ast.While))
            for part in syntax_parts(inner)
        }
        return any(
            steps_in_rhythm(inner, site.frame) and inner not in nested
            for text in texts
            for inner in syntax_parts(text)
        )


def steps_in_rhythm(node: ast.AST, frame: Frame) -> bool:
    """Whether this is a condition under which an optimizer steps every so many rounds."""
    return (
        isinstance(node, ast.If)
        and any(
            isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) for part in syntax_parts(node.test)
        )
        and any(
            isinstance(part, ast.Call) and is_step(part, frame)
            for statement in node.body
            for part in syntax_parts(statement)
        )
    )


def is_step(call: ast.Call, frame: Frame) -> bool:
    """`optimizer.step()`, or a function or method of the same text whose body has such a call."""
    if called_attribute(call) == "step":
        return True
    function = function_called(call, frame)
    return function is not None and any(
        called_attribute(part) == "step" for part in syntax_parts(function.node)
    )


def function_called(call: ast.Call, frame: Frame) -> Function | None:
    """What a call by name, or on `self`, leads to, as seen from a frame."""
    func = call.func
    found: Any = None
    if isinstance(func, ast.Name):
        scope: Scope | None = frame.scope if isinstance(frame.scope, Scope) else None
        while scope is not None and found is None:
            found, scope = scope.names.get(func.id), scope.outer
    elif isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self":
        found = frame.owner.find(func.attr)[0] if isinstance(frame.owner, ClassValue) else None
    return found if isinstance(found, Function) else None
