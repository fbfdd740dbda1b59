"""Steps that apply gradients which another step has applied already, with no backward in between.

Two optimizers that hold one parameter move it twice by one gradient; so does a `step` beside the one that the scaler calls.
A closure that computes nothing hands the optimizer the gradients of its first call again and again.  Two parameters that
share memory by `head.weight.data = embedding.weight.data` are moved one after the other, each by a gradient of its own.
A parameter that is twice in one list is moved twice by one step.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_flow import is_stand_in
from gradsight.detect.gradient_ledger import GradientLedger
from gradsight.detect.path import Path
from gradsight.interp.syntax import named_last
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer, members_of
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import DataAssigned, Stepping

PICKING = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.Lambda)
"""What may take some of the parameters that it goes through, and leave others to another list."""


@dataclass(frozen=True, slots=True)
class AppliedStep:
    """A step that used the gradient of a parameter, and the backward that the gradient was from."""

    optimizer: Optimizer
    site: Site
    filled_at: Site | None


class AppliedTwice:
    """Remembers for each parameter which gradient was applied last."""

    def __init__(self, path: Path, claims: Claims, ledger: GradientLedger) -> None:
        self.path = path
        self.claims = claims
        self.ledger = ledger
        self.applied: dict[Tensor, AppliedStep] = {}
        self.given_data: dict[Tensor, Site] = {}
        """Parameters that were given the memory of another tensor, and where."""
        self.looked_at: set[Optimizer] = set()

    def on_data_assigned(self, fact: DataAssigned) -> None:
        if fact.tensor.is_parameter and isinstance(fact.value, Tensor) and not fact.site.guards:
            self.given_data[fact.tensor] = fact.site

    def finish(self) -> None:
        """Parameters of stepped optimizers that lie in one memory: a step writes it once for each of them."""
        if not self.given_data or self.path.gradients_unknown:
            return
        reached = {leaf for run in self.path.backwards for leaf in run.leaves}
        moved = {tensor for one in self.path.optimizers if one.stepped for tensor in one.ever_held()}
        for tensor, site in self.given_data.items():
            others = {one for one in moved & reached if one.storage is tensor.storage} - {tensor}
            if tensor in moved & reached and any(one.shape == tensor.shape for one in others):
                self.claims.add("gradients-applied-twice", site, [], parameter=tensor.label, how="memory")

    def look_for_repeated(self, optimizer: Optimizer) -> None:
        """`[*net.parameters(), *net.parameters()]`: torch warns of it, and applies the gradient once for each."""
        self.looked_at.add(optimizer)
        if optimizer.site is None:
            return
        for group in optimizer.groups():
            members = members_of(group)
            twice = next((one for place, one in enumerate(members) if one in members[:place]), None)
            if twice is None:
                continue
            # What stands for all parameters of an unknown module may stand for some of them here and others there.
            is_known = self.path.knows_all_parameters(optimizer) and not self.path.decisions
            is_sure = is_known and not is_stand_in(twice)
            source = source_repeated(optimizer.site.node)
            if source or is_sure:
                name = source or twice.label
                self.claims.add("gradients-applied-twice", optimizer.site, [], parameter=name, how="repeated")
            return

    def on_stepping(self, fact: Stepping) -> None:
        optimizer, site = fact.optimizer, fact.site
        if optimizer not in self.looked_at:
            self.look_for_repeated(optimizer)
        again: list[tuple[Tensor, AppliedStep]] = []
        for parameter in self.path.parameters_of(optimizer):
            record = self.ledger.records.get(parameter)
            if record is None or record.state != "filled":
                self.applied.pop(parameter, None)
                continue
            before = self.applied.get(parameter)
            is_old = before is not None and not record.pending and before.filled_at is record.filled_at
            if before is not None and is_old and parameter.requires_grad is True:
                again.append((parameter, before))
            self.applied[parameter] = AppliedStep(optimizer, site, record.filled_at)
        if again and self.is_one_round(again[0][1], optimizer, site):
            self.claim(again, optimizer, site)

    def is_one_round(self, before: AppliedStep, optimizer: Optimizer, site: Site) -> bool:
        """Whether nothing that is not known came between: an optimizer that escaped may have been given other gradients."""
        return (
            not self.path.gradients_unknown
            and not any(
                one.escaped or one.is_guessed() or not self.path.knows_all_parameters(one)
                for one in (optimizer, before.optimizer)
            )
            and before.site.loops == site.loops
            and before.filled_at is not None
            and before.filled_at.loops[: len(site.loops)] == site.loops
            and (before.optimizer is optimizer or self.is_joint(before, optimizer))
        )

    def is_joint(self, before: AppliedStep, optimizer: Optimizer) -> bool:
        """Whether the backward was for both optimizers: it reached what only one of them holds, of each.

        Where each has a loss of its own, the parameters of both are meant to hear of both.
        """
        reached = {leaf for run in self.path.backwards if run.site is before.filled_at for leaf in run.leaves}
        one, other = set(self.path.parameters_of(before.optimizer)), set(self.path.parameters_of(optimizer))
        return all(not own or bool(own & reached) for own in (one - other, other - one))

    def claim(self, again: list[tuple[Tensor, AppliedStep]], optimizer: Optimizer, site: Site) -> None:
        parameter, before = again[0]
        if before.filled_at is None or is_tried_in_steps(before.site, site):
            return
        steps = [
            Step("made", before.filled_at, "the gradients are computed here"),
            *([] if before.site is site else [Step("written", before.site, "this step has applied them")]),
        ]
        both = before.optimizer is not optimizer
        if both and optimizer.site is not None:
            steps.append(Step("made", optimizer.site, "this optimizer holds parameters of another one"))
        self.claims.add(
            "gradients-applied-twice",
            site,
            [*steps, *self.path.call_steps(site)],
            parameter=parameter.label,
            how="closure" if before.site is site else "shared" if both else "again",
        )


def source_repeated(call: ast.AST) -> str:
    """`q1.parameters()`, where an optimizer is given that twice by one expression."""
    seen: set[str] = set()
    for given in call.args[:1] if isinstance(call, ast.Call) else ():
        chosen = {
            inner for part in syntax_parts(given) if isinstance(part, PICKING) for inner in syntax_parts(part)
        }
        for part in syntax_parts(given):
            if part in chosen or not isinstance(part, ast.Call) or part.args:
                continue
            if named_last(part.func) == "parameters":
                text = ast.unparse(part)
                if text in seen:
                    return text
                seen.add(text)
    return ""


def is_tried_in_steps(first: Site, second: Site) -> bool:
    """Whether a test says between two steps what the first has done: `opt.step(); assert moved(net); opt.step()`."""
    for one in (first, *first.callers()):
        for other in (second, *second.callers()):
            function = one.frame.function
            if one.frame is other.frame and function is not None:
                lines = range(one.line - one.unit.offset, other.line - other.unit.offset)
                return any(
                    isinstance(node, (ast.Assert, ast.Call))
                    and node.lineno in lines
                    and (isinstance(node, ast.Assert) or named_last(node.func).startswith("assert"))
                    for node in syntax_parts(function.node)
                )
    return False
