"""Closures of optimizers that call them several times in one step: each call must clear what the one before left."""

from __future__ import annotations

from typing import Any

from gradsight.agent.faults import Fault, step_at
from gradsight.agent.sites import place_of, text_of
from gradsight.agent.training import OptimizerRecord, TrainingWatch


def judge_closure(training: TrainingWatch, record: OptimizerRecord, optimizer: Any) -> None:
    """A step with a closure came through; torch's LBFGS counts how often it called it."""
    state: Any = next((each for each in optimizer.state.values() if "func_evals" in each), {})
    calls = state.get("func_evals", 0) - record.closure_calls
    record.closure_calls += calls
    gains = next((training.gains[bit] for bit in record.leaves if bit in training.gains), None)
    if gains is None or calls < 2:
        return
    if training.backwards == record.backwards_before and record.last_step:
        place = place_of(record.last_step[0])
        message = (
            f"`{text_of(place)}` calls a closure that computes no gradients: it applies the same ones again"
        )
        training.ledger.add(Fault("gradients-applied-twice", message, place, (), "warning", {"calls": calls}))
        return
    inside = [index for index in gains.since_clear if index > record.backwards_before]
    reach = training.reach(inside[-1]) if len(inside) >= calls else None
    if reach is not None and reach.stack:
        place = place_of(reach.stack[0])
        message = f"`{text_of(place)}` adds to the gradients of the previous call: nothing in the closure clears them"
        steps = step_at("read", "the step calls its closure several times", record.last_step)
        training.ledger.add(
            Fault("gradients-never-cleared", message, place, steps, "warning", {"calls": calls})
        )
