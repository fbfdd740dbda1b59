"""Writes by an index that names one row several times: one of the values stays, and autograd gives all of them a gradient.

Torch leaves open which one stays (`index_put_` with `accumulate=False`); values that are equal do no harm.
"""

from __future__ import annotations

from typing import Any

import torch

from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.graph import untracked
from gradsight.agent.sites import capture, place_of, text_of

_LARGEST = 1 << 16


class RepeatedRows:
    """Hears of every write by index."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    @quietly
    def set_item(self, target: Any, index: Any, value: Any) -> None:
        """`target[index] = value`."""
        if not isinstance(value, torch.Tensor) or not value.requires_grad or not torch.is_grad_enabled():
            return
        indices = index if isinstance(index, tuple) else (index,)
        rows = [each for each in indices if isinstance(each, torch.Tensor)]
        if len(rows) != 1 or indices[0] is not rows[0] or rows[0].dtype != torch.long or rows[0].dim() != 1:
            return
        with untracked():
            if self._differ(target, rows[0], indices[1:], value):
                self._report()

    def _differ(self, target: Any, rows: torch.Tensor, rest: tuple[Any, ...], value: torch.Tensor) -> bool:
        """Whether two of the values that one row gets are not the same."""
        count = rows.numel()
        if not 1 < count <= _LARGEST or value.numel() > _LARGEST or rest or rows.device.type != "cpu":
            return False
        unique, inverse = torch.unique(rows % target.shape[0], return_inverse=True)
        if unique.numel() == count:
            return False
        values = value.detach().expand(count, *target.shape[1:]).reshape(count, -1)
        first = torch.full((unique.numel(),), -1, dtype=torch.long)
        # Whichever of the equal positions stays here: it stands for its row.
        first[inverse] = torch.arange(count)
        return not torch.equal(values, values[first[inverse]])

    def _report(self) -> None:
        stack = capture(5)
        if not stack:
            return
        place = place_of(stack[0])
        message = (
            f"`{text_of(place)}` writes one row several times: one value stays, all get its gradient; "
            "use `index_add`"
        )
        steps = step_at("written", "the index has equal entries here", stack)
        self.ledger.add(Fault("rows-written-twice", message, place, steps, "warning", {}))
