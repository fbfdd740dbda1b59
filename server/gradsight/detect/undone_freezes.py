"""Parameters that were frozen and thawed again before anything was computed with them: the freeze had no effect."""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import is_inside
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Backward, Declared, Frozen, StandInApplied, Used


class Freeze:
    """All that one place froze, what of it was thawed untouched, and how many optimizers there were."""

    __slots__ = ("optimizers", "site", "tensors", "thawed")

    def __init__(self, site: Site, optimizers: int) -> None:
        self.site = site
        self.optimizers = optimizers
        self.tensors: set[Tensor] = set()
        self.thawed: dict[Tensor, Site] = {}


class UndoneFreezes:
    """Follows what each place freezes until it is used or thawed."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.freezes: dict[object, Freeze] = {}
        self.idle: dict[Tensor, Freeze] = {}
        """Frozen parameters that nothing was computed with since."""

    def on_frozen(self, fact: Frozen) -> None:
        if fact.site.guards or self.path.assuming or not fact.tensor.is_parameter:
            return
        freeze = self.freezes.get(fact.site.key)
        if freeze is None:
            freeze = self.freezes[fact.site.key] = Freeze(fact.site, len(self.path.optimizers))
        freeze.tensors.add(fact.tensor)
        freeze.thawed.pop(fact.tensor, None)
        self.idle[fact.tensor] = freeze

    def on_used(self, fact: Used) -> None:
        if self.idle:
            for value in fact.arguments.values():
                if type(value) is Tensor:
                    self.idle.pop(value, None)

    def on_stand_in_applied(self, fact: StandInApplied) -> None:
        for tensor in fact.parameters:
            self.idle.pop(tensor, None)

    def on_backward(self, fact: Backward) -> None:
        """A backward went past what is frozen: that is what it was frozen for."""
        self.idle.clear()

    def on_declared(self, fact: Declared) -> None:
        freeze = self.idle.pop(fact.tensor, None)
        if freeze is None or fact.site.guards or freeze.optimizers != len(self.path.optimizers):
            return
        if self.path.has_receiver and entered_at(fact.site) is not entered_at(freeze.site):
            # A method that is executed by itself on an object that froze it while it was made: what was computed between is not seen.
            return
        if not picks_by_place(fact.site) or picks_by_place(freeze.site):
            freeze.thawed[fact.tensor] = fact.site

    def finish(self) -> None:
        self.conclude_wrapped()
        for freeze in self.freezes.values():
            thawing = next(iter(freeze.thawed.values()), None)
            # Where a part stays frozen, thawing the rest is the way to choose what learns.
            if thawing is None or set(freeze.thawed) != freeze.tensors or thawing.key == freeze.site.key:
                continue
            names = sorted({tensor.label for tensor in freeze.tensors if tensor.label})
            self.claims.add(
                "freeze-undone",
                thawing,
                [Step("made", freeze.site, "frozen here"), *self.path.call_steps(thawing)],
                target=names[0] if len(names) == 1 else "",
            )

    def conclude_wrapped(self) -> None:
        """`nn.Parameter` of a tensor that was told to need no gradient: a parameter requires grad unless told otherwise."""
        for optimizer in self.path.optimizers:
            for tensor in optimizer.ever_held() if optimizer.stepped else ():
                source = tensor.source
                if source is None or not tensor.is_parameter or tensor.requires_grad is not True:
                    continue
                if (
                    source.frozen_at is not None
                    and not source.frozen_at.guards
                    and source.requires_grad is False
                ):
                    steps = [Step("made", source.frozen_at, "its gradient is switched off here")]
                    self.claims.add("freeze-undone", tensor.site, steps, target="", how="wrapped")


def entered_at(site: Site) -> ast.AST | None:
    """Where the outermost of the calls that led to a place was made."""
    callers = site.callers()
    return callers[-1].node if callers else None


def picks_by_place(site: Site) -> bool:
    """Whether what is frozen or thawed is found by its place among others: `layers[0]`, `for layer in layers[5:]`.

    How many there are is often not known: a part is then all that a path has seen of the whole.
    """
    function = site.frame.function
    texts: list[ast.AST] = [function.node] if function is not None else list(site.unit.tree)
    loops = [
        part.iter
        for text in texts
        for part in syntax_parts(text)
        if isinstance(part, ast.For) and is_inside(site.node, part)
    ]
    return any(
        isinstance(part, ast.Subscript) and is_place(part.slice)
        for place in [site.node, *loops]
        for part in syntax_parts(place)
    )


def is_place(index: ast.expr) -> bool:
    """`[0]`, `[-1]`, `[5:]`: a place among others, and no name."""
    if isinstance(index, ast.UnaryOp):
        index = index.operand
    return isinstance(index, ast.Slice) or (isinstance(index, ast.Constant) and isinstance(index.value, int))
