"""Writes in place that autograd recorded, and writes to a tensor of the graph that it did not."""

from __future__ import annotations

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Maybe, Node, Tensor, Write
from gradsight.model.trace import Walked, Wrote

REPLACING = {
    "round_",
    "sign_",
    "floor_",
    "ceil_",
    "copy_",
    "clamp_",
    "trunc_",
    "bernoulli_",
    "load_state_dict",
}
"""Writes that give a straight-through estimator or a projection its meaning: the value changes on purpose."""

RESCALING = {"mul_", "div_", "pow_", "sqrt_", "exp_", "sigmoid_", "tanh_", "neg_", "reciprocal_", "square_", "__imul__", "__itruediv__", "__ipow__"}  # fmt: skip


class RecordedWrites:
    """What was written in place without harm is told at the end, as a hint."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.recorded: list[tuple[Site, str]] = []
        self.unrecorded: list[tuple[Tensor, Write]] = []
        """Tensors of the graph that were written behind autograd's back."""

    def finish(self) -> None:
        for site, op in self.recorded:
            self.claims.add("inplace-recorded", site, [], op=op, target=self.path.text_of_target(site))

    def on_walked(self, fact: Walked) -> None:
        if self.unrecorded:
            for node in fact.nodes:
                self.check_unrecorded(node, fact.site)

    def check_unrecorded(self, node: Node, site: Site) -> None:
        """The node read a tensor of the graph whose value had been changed behind autograd's back."""
        for target, write in self.unrecorded:
            if node.tick <= write.tick:
                continue
            for operand in node.operands:
                if operand.storage is target.storage and (
                    operand is target or operand.node is target.node or operand.base is not None
                ):
                    steps = [
                        Step(
                            "made",
                            target.node.site if target.node is not None else target.site,
                            "recorded here",
                        ),
                        Step("needed", site, "this backward uses the gradient of the old value"),
                        *self.path.call_steps(write.site),
                    ]
                    self.claims.add(
                        "graph-written-without-grad",
                        write.site,
                        steps,
                        op=write.op,
                        target=self.path.text_of_target(write.site),
                    )

    def on_wrote(self, fact: Wrote) -> None:
        target, op, site, write = fact.tensor, fact.op, fact.site, fact.write
        if self.path.assuming and op in RESCALING:
            self.note_rescaled(target, write)
        if write.mode != "graph" and not (write.mode == "no_grad" and not self.path.grad_mode):
            return
        if write.mode == "no_grad" and op not in REPLACING:
            source = target.source if target.snapshot == "data" else target
            if source is target and source.node is None and source.view_made_without_grad:
                source = source.root()
            if not self.path.grad_mode or source is not target:
                if source is not None and source.node is not None and source.requires_grad is True:
                    self.unrecorded.append((source, write))
        if write.mode == "graph" and target.node is not None and target.requires_grad is True:
            kept = write.counter.kept
            if kept is None or kept >= write.version:
                self.recorded.append((site, op))

    def note_rescaled(self, target: Tensor, write: Write) -> None:
        """A value that is taken to carry a graph was rescaled behind autograd's back."""
        by_data = target.snapshot == "data" and self.path.grad_mode
        source = target.source if target.snapshot == "data" else target
        if write.mode != "no_grad" or source is None or source.node is None:
            return
        flag = source.requires_grad
        if (flag is True and by_data) or (isinstance(flag, Maybe) and not flag.weak):
            self.unrecorded.append((source, write))
