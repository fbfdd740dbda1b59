"""Steps that apply gradients which another step has applied already, with no backward in between.

Two optimizers that hold one parameter move it twice by one gradient; so does a `step` beside the one that the scaler calls.
An optimizer that steps inside the step of another one is a part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradsight.agent.faults import Fault, quietly, step_at
from gradsight.agent.shadow import Mask
from gradsight.agent.sites import Stack, place_of, text_of
from gradsight.agent.training import OptimizerRecord, TrainingWatch


@dataclass(frozen=True)
class _Step:
    """A step of one of torch's own optimizers: what it holds, and after how many backwards it came."""

    optimizer: int
    mask: Mask
    backwards: int
    stack: Stack


class TwiceApplied:
    """Hears of every step, before and after."""

    def __init__(self, training: TrainingWatch) -> None:
        self.training = training
        self._running = 0
        self._last: dict[int, _Step] = {}
        self._told: set[Any] = set()
        training.listeners.append(self)

    def cleared(self, bit: int) -> None:
        """The gradient of this leaf is gone."""
        self._last.pop(bit, None)

    def gradient_written(self, bit: int, name: str, stack: Stack) -> None:
        """Somebody made another gradient of it."""
        self._last.pop(bit, None)

    def filled(self, reached: Mask, stack: Stack) -> None:
        """The number of backwards tells."""

    def stepped(self, mask: Mask) -> None:
        """A step is heard of when it begins."""

    @quietly
    def step_begins(self, optimizer: Any, stack: Stack, has_closure: bool, is_library: bool) -> None:
        self._running += 1
        record = self.training.optimizers.get(id(optimizer))
        if self._running > 1 or has_closure or not is_library or record is None or not stack:
            return
        now = _Step(id(optimizer), record.mask, self.training.backwards, stack)
        again = [bit for bit in record.leaves if self._is_applied(bit, now)]
        if again and stack[0] not in self._told:
            self._told.add(stack[0])
            self._report(record, again, now)
        self._last.update(dict.fromkeys(record.leaves, now))

    def step_ends(self) -> None:
        self._running -= 1

    def _is_applied(self, bit: int, now: _Step) -> bool:
        """Whether the gradient of a leaf is still that of the last step over it."""
        before, gains = self._last.get(bit), self.training.gains.get(bit)
        tensor = self.training.shadow.leaves[bit].tensor()
        if before is None or gains is None or not gains.since_clear or tensor is None:
            return False
        if tensor.grad is None or not tensor.requires_grad or before.backwards != now.backwards:
            return False
        return gains.since_clear[-1] <= gains.consumed and (
            before.optimizer == now.optimizer or self._is_joint(before, now, gains.since_clear[-1])
        )

    def _is_joint(self, before: _Step, now: _Step, index: int) -> bool:
        """Whether the backward was for both optimizers: it reached what only one of them holds, of each."""
        reach = self.training.reach(index)
        if reach is None:
            return False
        alone = (before.mask & ~now.mask, now.mask & ~before.mask)
        return all(not own or own & reach.reached for own in alone)

    def _report(self, record: OptimizerRecord, again: list[int], now: _Step) -> None:
        before = self._last[again[0]]
        place = place_of(now.stack[0])
        shown = text_of(place, limit=50)
        is_shared = before.optimizer != now.optimizer
        message = (
            f"`{shown}` applies gradients that another optimizer has applied: both hold the same parameters"
            if is_shared
            else f"`{shown}` applies gradients that an earlier step has applied already"
        )
        steps = step_at("written", "this step has applied them", before.stack)
        if is_shared and record.made:
            steps += step_at("made", "this optimizer holds parameters of another one", record.made)
        evidence = {"parameters": len(again)}
        self.training.ledger.add(Fault("gradients-applied-twice", message, place, steps, "warning", evidence))
