"""Gradients that are clipped where it changes nothing: before there are any, or after the step has applied them.

A clip works if a backward has filled the gradients and a step is still to come.  One that works in no round of its loop is
misplaced: *early* where the gradients were cleared and backward comes later, *late* where the step came first and the
gradients are cleared before they are used again.  It is *partial* where the same backward adds more in the next round,
before the step: what is clipped then is not what is applied.

Any other edit of a gradient (`weight.grad.add_(penalty)`) is late in the same way, unless somebody reads the gradient before
it is cleared; it is never early, because a backward adds to what is there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_ledger import GradientLedger, GradientRecord
from gradsight.detect.path import Path
from gradsight.interp.tensors.training import Action
from gradsight.model.events import Step
from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.values import tensors_in

BACKWARDS = ("backward", "differentiate")
BY_HAND = {"clamp_", "clip_", "clamp_min_", "clamp_max_", "div_", "mul_", "nan_to_num_"}
"""Writes that limit or scale a gradient where it is."""
EDITS = {"add_", "sub_", "addcmul_", "addcdiv_", "lerp_", "masked_fill_"}
"""Writes that change a gradient in another way: a penalty, a decay, noise."""


@dataclass(frozen=True, slots=True)
class Clip:
    """One clipping: what was clipped, and how much of the log had happened by then."""

    site: Site
    tensors: frozenset[Tensor]
    position: int
    is_edit: bool = False
    """Whether it changes the gradients otherwise than by limiting or scaling them."""
    reads: int = 0
    """How many reads of gradients there had been."""


class MisplacedClipping:
    """Looks back at every clip when a path is over."""

    def __init__(self, path: Path, claims: Claims, ledger: GradientLedger) -> None:
        self.path = path
        self.claims = claims
        self.ledger = ledger
        ledger.watchers.append(self)
        self.by_hand: list[Clip] = []
        self.moves: list[tuple[Tensor, int, Site]] = []
        """Updates by hand, and how much of the log had happened by then."""
        self.reads: list[tuple[Tensor, int]] = []
        """Gradients that somebody read after an edit, and how much of the log had happened by then."""

    def gradient_used(self, leaf: Tensor, record: GradientRecord, node: ast.AST) -> None:
        """Whoever reads a gradient has a use for what was done to it."""
        if self.by_hand:
            self.reads.append((leaf, len(self.path.log)))

    def gradient_written(
        self, leaf: Tensor, target: Tensor, op: str, site: Site, others: list[Tensor], region: Any
    ) -> None:
        if op == "mul_" and is_by_zero(site.node):
            # `weight.grad *= 0` clears it.
            return
        if (op in BY_HAND or op in EDITS) and len(self.by_hand) < MOST_CLIPS:
            position, is_edit = len(self.path.log), op in EDITS
            self.by_hand.append(Clip(site, frozenset({leaf}), position, is_edit, len(self.reads)))

    def parameter_moved_by_hand(self, leaf: Tensor) -> None:
        """Updates by hand are steps that the log does not have."""
        self.by_hand.clear()
        self.moves.append((leaf, len(self.path.log), self.path.site()))

    def finish(self) -> None:
        log = self.path.log
        clips = [
            Clip(action.site, frozenset(tensors_in(action.subject)), position)
            for position, action in enumerate(log)
            if action.verb == "clip"
            and tensors_in(action.subject)
            and not any(is_endless(limit) for limit in action.leaves)
        ]
        verdicts: dict[Any, list[tuple[Clip, str, Site | None]]] = {}
        for clip in [*clips, *self.by_hand][:MOST_CLIPS]:
            verdicts.setdefault(clip.site.key, []).append((clip, *self.judge(clip)))
        for found in verdicts.values():
            partial = next((one for one in found if one[1] == "partial"), None)
            if partial is not None and partial[2] is not None:
                self.claim(partial[0], "partial", partial[2])
                continue
            if any(one[0].is_edit and (one[1] != "late" or self.is_read(one[0])) for one in found):
                continue
            found = [one for one in found if one[1] != "idle"] or found
            # Between the step of one round and the zero_grad of the next a clip is late or early; the first round tells.
            clip, how, other = found[0] if found[0][1] == "early" else found[-1]
            if other is not None and all(one[1] == how or one[1] == "late" for one in found):
                self.claim(clip, how, other)

    def claim(self, clip: Clip, how: str, other: Site) -> None:
        steps = [Step("needed", other, WORDS[how]), *self.path.call_steps(clip.site)]
        self.claims.add("clip-misplaced", clip.site, steps, how="edited" if clip.is_edit else how)

    def is_read(self, clip: Clip) -> bool:
        """Whether one of the gradients is read between an edit and the next time that it is cleared."""
        clear = self.cleared_after(clip)
        return any(leaf in clip.tensors and place <= clear for leaf, place in self.reads[clip.reads :])

    def judge(self, clip: Clip) -> tuple[str, Site | None]:
        """`late` with the step, `early` with the backward, `idle` where no round follows, or nothing where the clip can work."""
        log = self.path.log
        earlier = [place for place, action in enumerate(log[: clip.position]) if self.concerns(action, clip)]
        before = log[earlier[-1]] if earlier else None
        after = [action for action in log[clip.position :] if self.concerns(action, clip)]
        is_over = not after or after[0].verb == "zero"
        if before is not None and before.verb in BACKWARDS:
            if self.adds_up(before, after, clip):
                return "partial", after[0].site
            moved = self.moved_between(clip, earlier[-1]) if is_over else None
            return ("late", moved) if moved is not None else ("", None)
        if before is not None and before.verb == "step":
            return (
                ("late", before.site) if is_over and self.has_backward(log[: clip.position]) else ("", None)
            )
        if before is not None and not after:
            return "idle", None
        cleared = bool(before is None and after and after[0].verb == "zero")
        run = after[cleared] if len(after) > cleared and after[cleared].verb in BACKWARDS else None
        if run is None:
            return "", None
        is_used = any(action.verb == "step" for action in after) or any(
            leaf in clip.tensors and tick > run.tick for leaf, _, tick in self.ledger.updates
        )
        return ("early", run.site) if is_used else ("", None)

    def moved_between(self, clip: Clip, backward: int) -> Site | None:
        """Where all that is clipped was moved by hand since the backward, and is not moved again before it is cleared."""
        clear = self.cleared_after(clip)
        applied = {leaf: site for leaf, place, site in self.moves if backward < place <= clip.position}
        again = any(leaf in clip.tensors for leaf, place, _ in self.moves if clip.position < place <= clear)
        return next(iter(applied.values())) if not again and clip.tensors <= applied.keys() else None

    def cleared_after(self, clip: Clip) -> int:
        """Where in the log the gradients are cleared next, or its end."""
        log = self.path.log
        later = enumerate(log[clip.position :], clip.position)
        return next(
            (place for place, one in later if one.verb == "zero" and self.concerns(one, clip)), len(log)
        )

    def adds_up(self, before: Action, after: list[Action], clip: Clip) -> bool:
        """Whether the backward whose gradients were clipped adds to them in the next round, and a step comes only later."""
        following = after[0] if after else None
        return (
            following is not None
            and following.verb == "backward"
            and following.site.key == before.site.key
            and following.loops[:-1] == before.loops[:-1]
            and following.loops != before.loops
            and clip.site.loops[: len(before.loops)] == before.loops
            and any(action.verb == "step" for action in after)
        )

    def concerns(self, action: Action, clip: Clip) -> bool:
        if action.verb in BACKWARDS:
            return not action.leaves or any(leaf in clip.tensors for leaf in action.leaves)
        if action.verb not in ("step", "zero"):
            return False
        subject = action.subject
        if isinstance(subject, Optimizer):
            held = self.path.ever_held_by(subject)
            return not held or bool(held & clip.tensors) or not self.path.knows_all_parameters(subject)
        return bool(clip.tensors & {tensor for _, tensor in self.path.tensors_of(subject, "parameter")})

    def has_backward(self, actions: list[Action]) -> bool:
        return any(action.verb in BACKWARDS for action in actions)


MOST_CLIPS = 200
WORDS = {
    "late": "the step has applied them here",
    "early": "the gradients are computed here",
    "partial": "this backward adds more to them in the next iteration",
}


def is_endless(limit: Any) -> bool:
    """A limit without end: the call only measures the gradients."""
    return isinstance(limit, (int, float)) and limit >= 1e6


def is_by_zero(node: ast.AST) -> bool:
    """Whether a product is written out as one with zero."""
    factors = [node.value] if isinstance(node, ast.AugAssign) else getattr(node, "args", [])[:1]
    return any(isinstance(one, ast.Constant) and one.value == 0 for one in factors)
