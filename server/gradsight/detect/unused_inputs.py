"""`autograd.grad` of a tensor that the outputs do not depend on."""

from __future__ import annotations

from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Cut, Edge, Node, Tensor, nodes_and_leaves
from gradsight.model.trace import GradRequested


class UnusedInputs:
    """Looks for the wanted tensor behind the outputs."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_grad_requested(self, fact: GradRequested) -> None:
        self.check_in_graph(fact.outputs, fact.wanted, fact.site)

    def check_in_graph(self, outputs: list[Tensor], wanted: Tensor, site: Site) -> None:
        """autograd.grad refuses a tensor that the output does not depend on, or that needs no gradient."""
        if wanted.needs_grad() is False:
            self.claims.add(
                "grad-of-unused",
                site,
                [Step("made", wanted.site, "created here, without `requires_grad`")],
                target=wanted.label,
                needs_none=True,
            )
        if wanted.needs_grad() is not True:
            return
        target = wanted.edge()
        if target is None or self.path.gradients_unknown or self.path.truncated:
            return
        todo: list[Edge] = [edge for out in outputs if (edge := out.edge()) is not None]
        seen: set[Any] = set()
        while todo:
            edge = todo.pop()
            if edge is target:
                self.claims.granted.add(("grad-of-unused", site.key))
                return
            if edge in seen:
                continue
            seen.add(edge)
            if isinstance(edge, Node):
                if edge.requires is not True or edge.open:
                    return
                todo.extend(edge.inputs)
        cut = self.cut_between(seen, wanted)
        if cut is not None:
            steps = [
                Step("made", wanted.site, "created here"),
                Step("needed", site, "`autograd.grad` cannot reach it through the cut"),
                *self.path.call_steps(cut.site),
            ]
            self.claims.add("grad-of-unused", cut.site, steps, target=wanted.label, cut=cut.op)
            return
        self.claims.add(
            "grad-of-unused", site, [Step("made", wanted.site, "created here")], target=wanted.label
        )

    def cut_between(self, reached: set[Any], wanted: Tensor) -> Cut | None:
        """The place where the way from a tensor to what was computed of it was cut, and a new leaf was made."""
        for leaf in sorted(
            (edge for edge in reached if isinstance(edge, Tensor)), key=lambda leaf: leaf.serial
        ):
            for cut in sorted(leaf.cuts, key=lambda cut: cut.serial):
                behind = nodes_and_leaves(cut.edges)
                if (
                    cut.source is wanted
                    or wanted in behind
                    or (wanted.node is not None and wanted.node in behind)
                ):
                    return cut
        return None
