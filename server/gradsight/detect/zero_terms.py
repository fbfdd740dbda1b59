"""Terms of a loss whose gradient is zero everywhere: each of their ways to a parameter leads through `round`, `sign` or their kin.

Backward runs through such a term and adds zeros, while the other terms train the same parameters.
"""

from __future__ import annotations

from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.dead_terms import linear_chain
from gradsight.detect.gradient_flow import nodes_behind
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.tensors import Edge, Node, leaves_of
from gradsight.model.trace import Backward

JOINING = {"add", "sub", "add_", "sub_", "stack", "cat"}
MOST_NODES = 400


class ZeroTerms:
    """Looks at the terms of each loss that goes backward."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.judged: set[Any] = set()

    def on_backward(self, fact: Backward) -> None:
        run = fact.run
        chain = linear_chain(run.loss.edge()) if run.zeros else set()
        if len(chain) > MOST_NODES:
            return
        for node in chain:
            if node.op in JOINING and len(node.inputs) > 1:
                for edge in node.inputs:
                    self.check_term(edge, run)

    def check_term(self, edge: Edge, run: Any) -> None:
        if not isinstance(edge, Node) or leaves_of([edge], through_zero=False):
            return
        behind = nodes_behind(edge)
        if any(node.open for node in behind):
            return
        lost = leaves_of([edge]) & (run.leaves - run.zero_leaves)
        held = {tensor for optimizer in self.path.optimizers for tensor in self.path.parameters_of(optimizer)}
        zeros = [node for node in behind if node.zero]
        if not lost & held or not zeros:
            return
        zero = max(zeros, key=lambda node: node.tick)
        if zero.site.key in self.judged:
            return
        self.judged.add(zero.site.key)
        first = min(lost & held, key=lambda leaf: leaf.serial)
        steps = [
            Step("needed", run.site, "this `backward()` trains it by other terms only"),
            *self.path.call_steps(zero.site),
        ]
        self.claims.add(
            "term-cut", zero.site, steps, cut="zero", op=zero.op, source=first.label, parameter=first.label, partly=True
        )  # fmt: skip
