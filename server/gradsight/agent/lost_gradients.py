"""Gradients that a clear between two backwards throws away: `aux.backward()`, `zero_grad()`, `loss.backward()`, `step()`.

It is a mistake where nobody wanted them: no step used them, no line read them, and the backward reached nothing but what
optimizers hold.  A backward for the gradient of an input, or for what hooks see, has another purpose.
"""

from __future__ import annotations

from typing import Any

import torch

from gradsight.agent.cuts import BackwardReach
from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.gains import Gains
from gradsight.agent.naming import reachable_modules
from gradsight.agent.shadow import Shadow
from gradsight.agent.sites import FrameKey, place_of, same_line, text_of
from gradsight.agent.training import OptimizerRecord, TrainingWatch

_FEWEST_STEPS = 2


class LostGradients:
    """Looks at what was dropped since the step before."""

    def __init__(self, ledger: Ledger, shadow: Shadow, training: TrainingWatch) -> None:
        self.ledger = ledger
        self.shadow = shadow
        self.training = training
        self._seen: dict[tuple[FrameKey, FrameKey], int] = {}
        self._is_watched = False

    def watched(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The program looks at gradients on their way: `register_hook`, `retain_grad`."""
        self._is_watched = True

    @quietly
    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to step."""
        record = self.training.optimizers.get(id(optimizer))
        if record is None or record.has_closure or self._is_watched:
            return
        for bit in record.leaves:
            gains = self.training.gains.get(bit)
            lost = self._lost(gains, record) if gains is not None else None
            if gains is not None and lost is not None:
                key = (gains.dropped_at[0], lost.stack[0])
                self._seen[key] = self._seen.get(key, 0) + 1
                if self._seen[key] == _FEWEST_STEPS and not _has_backward_hooks():
                    self._report(gains, lost, record)
                return

    def _lost(self, gains: Gains, record: OptimizerRecord) -> BackwardReach | None:
        """The backward whose gradient was dropped since the last step, though the step has another one's."""
        if not gains.since_clear or not gains.dropped_at or gains.dropped <= record.seen_backward:
            return None
        lost, used = self.training.reach(gains.dropped), self.training.reach(gains.since_clear[-1])
        if lost is None or used is None or not lost.stack or same_line(lost.stack, used.stack):
            return None
        return None if self._is_wanted(lost) else lost

    def _is_wanted(self, reach: BackwardReach) -> bool:
        """Whether somebody took a gradient of this backward, or may still take it."""
        if reach.reached & ~self.training.managed:
            return True
        for leaf in self.shadow.leaves_in(reach.reached):
            gains = self.training.gains.get(leaf.bit)
            if gains is None or reach.index in gains.since_clear:
                return True
            if max(gains.consumed, gains.read) >= reach.index:
                return True
        return False

    def _report(self, gains: Gains, lost: BackwardReach, record: OptimizerRecord) -> None:
        place = place_of(gains.dropped_at[0])
        backward = text_of(place_of(lost.stack[0]), limit=40)
        message = f"`{text_of(place)}` drops the gradients of `{backward}`: no step has used them"
        steps = (
            *step_at("needed", "these gradients are lost", lost.stack),
            *step_at("read", "the step has those of a later backward only", record.last_step),
        )
        self.ledger.add(
            Fault("cleared-before-step", message, place, steps, "warning", {"steps": _FEWEST_STEPS})
        )


def _has_backward_hooks() -> bool:
    """Whether a module hands its gradients to somebody."""
    return any(
        part._backward_hooks or part._backward_pre_hooks
        for module in reachable_modules()
        for part in module.modules()
    )
