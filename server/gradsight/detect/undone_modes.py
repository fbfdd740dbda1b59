"""Norm layers that were put into eval mode by themselves, to keep their statistics, and back by a `train()` around them.

A norm layer that is switched back and used before it is put into eval mode again normalises by its batch, and its
statistics move.  Whoever calls `train()` first and freezes afterwards, in every epoch, is right.
"""

from __future__ import annotations

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.tensors.training import Action
from gradsight.model.events import Step
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Used
from gradsight.model.values import Layer


class UndoneModes:
    """Notes when the parameters of norm layers are used, and looks at the switches when the path is over."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.used: dict[Tensor, list[int]] = {}

    def on_used(self, fact: Used) -> None:
        if "self.running_mean" in fact.arguments:
            weight = fact.arguments.get("self.weight")
            if type(weight) is Tensor:
                self.used.setdefault(weight, []).append(self.path.tick)

    def finish(self) -> None:
        if not self.used or not self.path.backwards:
            return
        switches = [action for action in self.path.log if action.verb in ("eval", "train")]
        for place, action in enumerate(switches):
            layer = action.subject
            if action.verb != "eval" or not is_batch_norm(layer) or action.site.guards:
                continue
            undone = self.undone_by(layer, action, switches[place + 1 :])
            if undone is not None:
                self.claims.add(
                    "freeze-undone",
                    undone.site,
                    [
                        Step("made", action.site, "put into eval mode here"),
                        *self.path.call_steps(undone.site),
                    ],
                    target="",
                    how="mode",
                )
                return

    def undone_by(self, layer: Layer, froze: Action, later: list[Action]) -> Action | None:
        """The `train()` of a module around a layer that came before any use of it, and that a use came after."""
        weight = next(
            (one for one in layer.attributes.values() if type(one) is Tensor and one.is_parameter), None
        )
        ticks = self.used.get(weight, []) if weight is not None else []
        undone: Action | None = None
        for action in later:
            around = [part for _, part in self.path.modules_in(action.subject)]
            if not any(part is layer for part in around):
                continue
            first, last = (undone or froze).tick, action.tick
            if any(first < tick <= last for tick in ticks):
                return undone
            if action.verb == "eval":
                undone = None
            elif action.subject is not layer and not action.site.guards:
                undone = undone or action
        return undone if undone is not None and any(tick > undone.tick for tick in ticks) else None


def is_batch_norm(module: object) -> bool:
    return isinstance(module, Layer) and "BatchNorm" in module.name
