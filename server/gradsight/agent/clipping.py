"""Gradients that are clipped where it changes nothing: before there are any, or after the step has applied them.

A clip *works* if a backward has filled the gradients and no step has used them yet.  Otherwise what comes next decides:
*late* if the gradients are cleared before anything adds to them, *early* if a backward fills them and a step follows.
One that works is *partial* if the same backward adds more to the gradients before the step.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.utils import clip_grad

from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.shadow import Mask, Shadow
from gradsight.agent.sites import FrameKey, Stack, capture, place_of, text_of
from gradsight.agent.training import TrainingWatch

_FUNCTIONS = ("clip_grad_norm_", "clip_grad_value_")
_BY_HAND = frozenset(("clamp_", "clamp_min_", "clamp_max_", "clip_"))
_ENDLESS = 1e6


@dataclass
class _Clip:
    """One clipping that did not work: whose gradients, and what is awaited."""

    stack: Stack
    mask: Mask
    awaits: str
    other: Stack
    filled_at: FrameKey | None = None
    """The backward whose gradients a clip that works has clipped."""
    is_partial: bool = False


@dataclass
class _Line:
    """What the clips of one line came to."""

    stack: Stack
    verdicts: list[str] = field(default_factory=list)
    other: Stack = ()


class Clipping:
    """Follows every clip to what comes after it."""

    def __init__(self, ledger: Ledger, shadow: Shadow, training: TrainingWatch) -> None:
        self.ledger = ledger
        self.shadow = shadow
        self.training = training
        self._open: list[_Clip] = []
        self._lines: dict[FrameKey, _Line] = {}
        self._inside = 0
        training.listeners.append(self)

    def install(self) -> None:
        """Stands before torch's own functions, under both of their addresses."""
        for name in _FUNCTIONS:
            original = getattr(clip_grad, name)
            wrapped = self._wrapped(original)
            setattr(clip_grad, name, wrapped)
            setattr(torch.nn.utils, name, wrapped)

    def _wrapped(self, original: Any) -> Any:
        @functools.wraps(original)
        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(parameters, torch.Tensor):
                parameters = list(parameters)
            limit = args[0] if args else kwargs.get("max_norm", kwargs.get("clip_value"))
            if not (isinstance(limit, (int, float)) and limit >= _ENDLESS):
                self._clipped(
                    [parameters] if isinstance(parameters, torch.Tensor) else parameters, capture(2)
                )
            self._inside += 1
            try:
                return original(parameters, *args, **kwargs)
            finally:
                self._inside -= 1

        return clip

    @quietly
    def _clipped(self, parameters: list[Any], stack: Stack) -> None:
        mask = 0
        for parameter in parameters:
            leaf = self.shadow.known_leaf(parameter) if isinstance(parameter, torch.Tensor) else None
            mask |= 1 << leaf.bit if leaf is not None else 0
        if mask:
            self._begin(mask, stack)

    @quietly
    def gradient_written(self, bit: int, name: str, stack: Stack) -> None:
        """Somebody limits a gradient where it is."""
        if not self._inside and name.rpartition("::")[2].partition(".")[0] in _BY_HAND:
            self._begin(1 << bit, stack)

    def _begin(self, mask: Mask, stack: Stack) -> None:
        if not stack:
            return
        self._lines.setdefault(stack[0], _Line(stack))
        gains = [self.training.gains.get(leaf.bit) for leaf in self.shadow.leaves_in(mask)]
        filled = [each for each in gains if each is not None and each.since_clear]
        if any(each.since_clear[-1] > each.consumed for each in filled):
            reach = self.training.reach(max(each.since_clear[-1] for each in filled))
            key = reach.stack[0] if reach is not None and reach.stack else None
            self._open.append(_Clip(stack, mask, "applied", (), key))
        else:
            self._open.append(
                _Clip(stack, mask, "cleared" if filled else "filled", self.training.last_step_of(mask))
            )

    # What the training loop does next.

    def cleared(self, bit: int) -> None:
        """The gradient of this leaf is gone."""
        self._settle(1 << bit, "cleared")

    def filled(self, reached: Mask, stack: Stack) -> None:
        """A backward has added to gradients."""
        for clip in self._open:
            if clip.awaits == "filled" and clip.mask & reached:
                clip.awaits, clip.other = "stepped", stack
            elif clip.awaits == "applied" and clip.mask & reached:
                if stack and clip.filled_at == stack[0]:
                    clip.is_partial, clip.other = True, stack
        self._settle(reached, "filled")

    def stepped(self, mask: Mask) -> None:
        """An optimizer has used gradients."""
        self._settle(mask, "stepped")

    def _settle(self, mask: Mask, what: str) -> None:
        rest = []
        for clip in self._open:
            if not clip.mask & mask or (what == "filled" and clip.awaits in ("stepped", "applied")):
                rest.append(clip)
                continue
            verdict = "partial" if clip.is_partial and what == "stepped" else ""
            if clip.awaits == what:
                verdict = "late" if what == "cleared" else "early"
            elif clip.awaits == "filled" and what == "cleared":
                rest.append(clip)
                continue
            self._close(clip, verdict)
        self._open = rest

    def _close(self, clip: _Clip, verdict: str) -> None:
        line = self._lines[clip.stack[0]]
        line.verdicts.append(verdict)
        line.other = clip.other or line.other

    @quietly
    def finish(self, ended_by_itself: bool) -> None:
        """A line is misplaced if none of its clips worked, and all failed in the same way."""
        for clip in self._open:
            if clip.awaits == "cleared" and ended_by_itself:
                self._close(clip, "late")
        for line in self._lines.values():
            verdicts = set(line.verdicts)
            if len(verdicts) == 1 and "" not in verdicts and line.other:
                self._report(line, line.verdicts[0])
            elif "partial" in verdicts and verdicts <= {"partial", ""} and line.other:
                self._report(line, "partial")

    def _report(self, line: _Line, verdict: str) -> None:
        place = place_of(line.stack[0])
        shown = text_of(place, limit=50)
        if verdict == "late":
            message = (
                f"`{shown}` clips gradients that the step has already applied, and that are cleared next"
            )
            steps = step_at("needed", "the step has applied them here", line.other)
        elif verdict == "partial":
            message = f"`{shown}` clips before all gradients are there: clip once, right before the step"
            steps = step_at("needed", "this backward adds more to them", line.other)
        else:
            message = f"`{shown}` clips before backward: there is nothing to clip yet"
            steps = step_at("needed", "the gradients are computed here", line.other)
        self.ledger.add(
            Fault("clip-misplaced", message, place, steps, "warning", {"times": len(line.verdicts)})
        )
