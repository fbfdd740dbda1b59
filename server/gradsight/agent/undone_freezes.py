"""Parameters that were frozen and asked for gradients again before any operator ran: the freeze had no effect."""

from __future__ import annotations

import ast
import weakref
from dataclasses import dataclass, field

import torch

from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.oplog import OpLog
from gradsight.agent.shadow import Shadow
from gradsight.agent.sites import FrameKey, Stack, line_of, place_of, text_of, tree_of
from gradsight.agent.training import TrainingWatch

_MOST_FROZEN = 20_000


@dataclass
class _Frozen:
    """A parameter that a line froze; `thawed` is the line that took it back at once."""

    parameter: weakref.ref[torch.Tensor]
    stack: Stack
    clock: int
    thawed: Stack = ()


@dataclass
class FreezesTakenBack:
    """Hears of every change of `requires_grad`."""

    log: OpLog
    ledger: Ledger
    _frozen: dict[int, _Frozen] = field(default_factory=dict)

    @quietly
    def flagged(self, tensor: torch.Tensor, stack: Stack) -> None:
        """The flag of a leaf has changed."""
        if not isinstance(tensor, torch.nn.Parameter) or not stack:
            return
        if not tensor.requires_grad:
            if len(self._frozen) < _MOST_FROZEN:
                self._frozen[id(tensor)] = _Frozen(weakref.ref(tensor), stack, self.log.clock)
            return
        frozen = self._frozen.get(id(tensor))
        if frozen is not None and frozen.parameter() is tensor:
            # With an operator in between, the freeze may have been for what that one recorded.
            if frozen.clock == self.log.clock:
                frozen.thawed = stack
            else:
                del self._frozen[id(tensor)]

    @quietly
    def finish(self, training: TrainingWatch, shadow: Shadow) -> None:
        """Says which freezes were taken back whole, before they could matter."""
        lines: dict[FrameKey, list[_Frozen]] = {}
        for frozen in self._frozen.values():
            lines.setdefault(frozen.stack[0], []).append(frozen)
        for line, frozen_here in lines.items():
            thaws = {each.thawed[:1] for each in frozen_here}
            if len(thaws) != 1 or () in thaws or _is_chosen(frozen_here[0]):
                continue
            tensors = [each.parameter() for each in frozen_here]
            known = [shadow.known_leaf(each) for each in tensors if each is not None]
            trained = [each for each in known if each is not None and training.gained(each)]
            if trained:
                self._report(line, frozen_here[0].thawed, len(frozen_here))

    def _report(self, frozen: FrameKey, thawed: Stack, count: int) -> None:
        place = place_of(thawed[0])
        message = (
            f"`{text_of(place)}` unfreezes what line {line_of(frozen)} has frozen: the freeze has no effect"
        )
        steps = step_at("made", "frozen here, and used by nothing since", (frozen,))
        self.ledger.add(Fault("freeze-undone", message, place, steps, "warning", {"parameters": count}))


def _is_chosen(frozen: _Frozen) -> bool:
    """Whether one function freezes everything and then picks, under a condition, what is to be trained."""
    thaw = frozen.thawed[0]
    if thaw.code is not frozen.stack[0].code:
        return False
    tree, line = tree_of(thaw.code.co_filename), line_of(thaw)
    return tree is None or any(
        isinstance(node, (ast.If, ast.IfExp)) and node.lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(tree)
    )
