"""Gradients that a step has applied and that are still there when the next loss adds to them: the next step applies both.

*Two losses in a round*: an optimizer steps for one loss and then, at another place, for a second one.  Somewhere its gradients
are cleared, between these two they are not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_flow import nodes_behind
from gradsight.detect.gradient_ledger import GradientLedger
from gradsight.detect.path import Path
from gradsight.interp.tensors.training import Action
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.tensors import Tensor
from gradsight.model.trace import BackwardRun

KIND = "gradients-stepped-again"


class SteppedAgain:
    """Looks for two steps of one optimizer in one round when a path is over."""

    def __init__(self, path: Path, claims: Claims, ledger: GradientLedger) -> None:
        self.path = path
        self.claims = claims
        self.ledger = ledger

    def finish(self) -> None:
        if self.path.gradients_unknown:
            return
        for optimizer in self.path.optimizers:
            if optimizer.escaped or optimizer.is_guessed():
                continue
            steps = [one for one in self.path.log if one.verb == "step" and one.subject is optimizer]
            for first, second in pairwise(steps):
                if first.site.key != second.site.key and are_in_one_round(first, second):
                    if self.compare(optimizer, first, second):
                        break

    def compare(self, optimizer: Optimizer, first: Action, second: Action) -> bool:
        """Whether something that both losses train was cleared before the first of them, and not between the two steps."""
        runs = [one for one in self.path.log if one.verb == "backward"]
        ticks = [one.tick for one in runs]
        after = runs[bisect_right(ticks, first.tick) : bisect_left(ticks, second.tick)]
        if not after:
            return False
        for parameter in self.path.parameters_of(optimizer):
            clears = self.ledger.all_clears.get(parameter, [])
            before = bisect_left(clears, first.tick)
            since = clears[before - 1] if before else -1
            applied = any(parameter in one.leaves and since < one.tick < first.tick for one in runs)
            added = next((one for one in after if parameter in one.leaves), None)
            if not clears or not applied or added is None or (parameter.attributes or {}).get("<stand in>"):
                # What stands for an unknown module may stand for other parameters in each of the losses.
                continue
            if was_used_before(parameter, added, first):
                return False
            if self.ledger.was_cleared(parameter, first.tick, second.tick):
                return False
            if self.path.may_clear_between({parameter}, first.tick, second.tick):
                return False
            self.claims.add(
                KIND,
                added.site,
                [
                    Step("written", first.site, "this step has applied the gradients of the loss before"),
                    Step("needed", second.site, "this step applies them again"),
                ],
                between=True,
            )
            return True
        return False


def was_used_before(parameter: Tensor, run: Action, step: Action) -> bool:
    """Whether a loss had used a parameter before the step: it is the step that comes too early, and no clear that is missing."""
    loss = run.subject.loss if isinstance(run.subject, BackwardRun) else None
    return loss is not None and any(
        parameter in node.inputs and node.tick <= step.tick for node in nodes_behind(loss.edge())
    )


def are_in_one_round(first: Action, second: Action) -> bool:
    """Whether both stand in the same round of a loop, or in no loop at all."""
    return bool(set(first.loops) & set(second.loops)) or not (first.loops or second.loops)
