"""Sums in which the gradient of a tensor cancels: `x + (q - x)`, `x - (x + c)`.

Autograd adds what both terms hand back, and one is the negative of the other.  Where nothing else in the sum has a gradient
for the same parameters, they get none from it, or one that is zero everywhere.  A straight-through estimator detaches the
difference for that reason.
"""

from __future__ import annotations

from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Node, Tensor, leaves_of
from gradsight.model.trace import Backward, Combined

MOST = 200


class CancelledGradients:
    """Notes such sums, and tells of those that a backward comes through."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.sums: dict[Node, tuple[Tensor, Node, Site]] = {}

    def on_combined(self, fact: Combined) -> None:
        left, right, result = fact.left, fact.right, fact.result
        if not (isinstance(left, Tensor) and isinstance(right, Tensor) and isinstance(result, Tensor)):
            return
        if result.node is None or result.node.requires is not True or len(self.sums) > MOST:
            return
        if fact.operator in ("__radd__", "__rsub__"):
            left, right = right, left
        adds = fact.operator in ("__add__", "__radd__")
        if not adds and fact.operator not in ("__sub__", "__rsub__"):
            return
        for whole, other in ((left, right), (right, left)):
            rest = rest_without(whole, other, adds)
            if rest is not None and whole.needs_grad() is True:
                if lost(whole, rest):
                    inner = other.node
                    if inner is not None:
                        self.sums[result.node] = (whole, inner, self.path.site(fact.node))
                return

    def on_backward(self, fact: Backward) -> None:
        if not self.sums:
            return
        start = fact.run.loss.node
        todo: list[Any] = [start] if start is not None else []
        seen: set[Node] = set()
        while todo:
            node = todo.pop()
            if not isinstance(node, Node) or node in seen:
                continue
            seen.add(node)
            todo.extend(node.inputs)
            found = self.sums.pop(node, None)
            if found is not None:
                whole, inner, site = found
                steps = [
                    Step("made", inner.site, "the other term is created here"),
                    Step("needed", fact.run.site, "this backward adds both gradients"),
                    *self.path.call_steps(site),
                ]
                self.claims.add("gradient-cancels", site, steps, target=whole.label, cut="cancels")


def rest_without(whole: Tensor, other: Tensor, adds: bool) -> Tensor | None:
    """What is left of `whole + (rest - whole)`, `whole - (whole + rest)` and kin; None if nothing cancels."""
    node = other.node
    if node is None or node.op not in ("add", "sub") or len(node.operands) != 2:
        return None
    first, second = node.operands
    if adds and node.op == "sub" and second is whole and first is not whole:
        return first
    if not adds and node.op == "add" and whole in (first, second) and first is not second:
        return second if first is whole else first
    if not adds and node.op == "sub" and first is whole and second is not whole:
        return second
    return None


def lost(whole: Tensor, rest: Tensor) -> bool:
    """Whether what `whole` comes from gets no gradient through the rest."""
    edge, other = whole.edge(), rest.edge()
    if edge is None or any(node.open for node in nodes_of(edge)):
        return False
    reached = (
        leaves_of([other], through_zero=False)
        if other is not None and rest.needs_grad() is not False
        else set()
    )
    return not leaves_of([edge]) & reached


def nodes_of(edge: Any) -> set[Node]:
    found: set[Node] = set()
    todo = [edge]
    while todo:
        node = todo.pop()
        if isinstance(node, Node) and node not in found:
            found.add(node)
            todo.extend(node.inputs)
    return found
