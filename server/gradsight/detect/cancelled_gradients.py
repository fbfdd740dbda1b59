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
MOST_TERMS = 16


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
        terms = [*signed_terms(left, 1), *signed_terms(right, 1 if adds else -1)]
        counts: dict[Tensor, int] = {}
        for tensor, sign in terms:
            counts[tensor] = counts.get(tensor, 0) + sign
        for node in (left.node, right.node):
            inner = self.sums.get(node) if node is not None else None
            if node is not None and inner is not None:
                if counts.get(inner[0]):
                    # The tensor comes once more in the whole sum.
                    del self.sums[node]
                else:
                    return
        for whole in [tensor for tensor, count in counts.items() if not count]:
            if whole.needs_grad() is True and whole.node is not None:
                rest = [tensor for tensor, count in counts.items() if count]
                if rest and all(lost(whole, one) for one in rest):
                    other = (right if right is not whole else left).node or whole.node
                    self.sums[result.node] = (whole, other, self.path.site(fact.node))
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


def signed_terms(tensor: Tensor, sign: int) -> list[tuple[Tensor, int]]:
    """What a value is the sum of, as far as its sums and differences go; of a long sum, the last terms one by one."""
    found: list[tuple[Tensor, int]] = []
    todo = [(tensor, sign)]
    while todo:
        value, factor = todo.pop(0)
        node = value.node
        is_sum = node is not None and node.op in ("add", "sub") and len(node.operands) == 2
        if node is None or not is_sum or len(found) + len(todo) >= MOST_TERMS:
            found.append((value, factor))
            continue
        first, second = node.operands
        todo += [(first, factor), (second, factor if node.op == "add" else -factor)]
    return found


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
