"""Optimizers of whose parameters others clear a part: an encoder that two optimizers share, and only one of them clears."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter

from gradsight.detect.gradient_ledger import GradientLedger
from gradsight.detect.path import Path
from gradsight.model.library_objects import Optimizer
from gradsight.model.tensors import Tensor

tick_of = attrgetter("tick")


def is_cleared(
    path: Path, ledger: GradientLedger, optimizer: Optimizer, parameters: set[Tensor], start: int, end: int
) -> bool:
    """Whether the gradients of an optimizer were cleared in that time, by whomever.

    They were not, if `zero_grad()` of others was called for all that was cleared, and gradients arrived in parameters that none of these holds.
    """
    cleared = {one for one in parameters if ledger.was_cleared(one, start, end)}
    if not cleared:
        return False
    if all(ledger.was_only_scaled(one, start, end) for one in cleared):
        # Who lets all of them decay does so in place of clearing; a mask or a factor on some of them lets the others add up.
        return not any(isinstance(one.grad, Tensor) for one in parameters - cleared)
    # The log is in the order of its ticks, and asked for a few of them over and over.
    first = bisect_left(path.log, start, key=tick_of)
    last = bisect_right(path.log, end, key=tick_of)
    zeros = [action for action in path.log[first:last] if action.verb == "zero"]
    if not path.knows_all_parameters(optimizer) or any(action.subject is optimizer for action in zeros):
        return True
    if any((one.attributes or {}).get("<stand in>") for one in parameters):
        return True
    by_others: set[Tensor] = set()
    for action in zeros:
        subject = action.subject
        by_others |= (
            set(path.parameters_of(subject))
            if isinstance(subject, Optimizer)
            else {tensor for _, tensor in path.tensors_of(subject, "parameter")}
        )
    left = {one for one in parameters - by_others if isinstance(one.grad, Tensor)}
    return not (cleared <= by_others and left)
