"""Results that go on through an operator whose gradient is zero, while a penalty still trains what computed them.

`mse_loss(decoder(torch.normal(mu, spread)), x) + mu.pow(2).mean()`: gradients reach the encoder, and all that comes from the data
is zero.  What a straight-through sum hands back goes through the layers behind it, and is more than a penalty.
"""

from __future__ import annotations

from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.cut_features import MOST_NODES, is_layer, is_penalty, ways_to
from gradsight.detect.gradient_flow import nodes_behind
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Edge, Node, Tensor, leaves_of
from gradsight.model.trace import Backward


class ZeroFeatures:
    """Looks at the ways that are left beside operators that hand back zeros."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.taught: set[Tensor] = set()
        """Leaves that some backward reaches by more than a penalty."""
        self.punished: list[tuple[Node, set[Tensor], Site]] = []
        self.judged: set[Any] = set()

    def on_backward(self, fact: Backward) -> None:
        run = fact.run
        key = (run.site.key, len(run.leaves))
        if key in self.judged:
            return
        self.judged.add(key)
        graph = nodes_behind(run.loss.edge()) if run.zeros else set()
        zeros = [node for node in graph if node.zero] if len(graph) <= MOST_NODES else []
        zeros = list(used_by_layers(graph).intersection(zeros)) if zeros else []
        if not zeros:
            self.taught |= run.leaves
            return
        held = {tensor for optimizer in self.path.optimizers for tensor in self.path.parameters_of(optimizer)}
        lost = {node: leaves_of(node.inputs) & held & run.leaves - run.zero_leaves for node in zeros}
        every = set().union(*lost.values())
        behind = {inner for node in zeros for edge in node.inputs for inner in nodes_behind(edge)}
        self.taught |= run.leaves - every
        if every and is_penalty(ways_to(every, live_part(run.loss.edge())) - behind):
            self.punished += [(node, leaves, run.site) for node, leaves in lost.items() if leaves]
        else:
            self.taught |= run.leaves

    def finish(self) -> None:
        for node, leaves, backward in self.punished:
            if leaves & self.taught:
                continue
            first = min(leaves, key=lambda leaf: leaf.serial)
            steps = [
                Step("needed", backward, "this `backward()` trains it by other terms only"),
                *self.path.call_steps(node.site),
            ]
            self.claims.add(
                "term-cut", node.site, steps, cut="zero", op=node.op, source=first.label, parameter=first.label, partly=True
            )  # fmt: skip


def used_by_layers(graph: set[Node]) -> set[Node]:
    """What the layers of a loss compute with."""
    seen: set[Node] = set()
    todo: list[Edge] = [edge for node in graph if is_layer(node) for edge in node.inputs]
    while todo:
        edge = todo.pop()
        if isinstance(edge, Node) and edge not in seen:
            seen.add(edge)
            todo.extend(edge.inputs)
    return seen


def live_part(start: Edge | None) -> set[Node]:
    """The nodes that a backward from here brings anything but zeros to."""
    seen: set[Node] = set()
    todo: list[Edge] = [start] if start is not None else []
    while todo:
        edge = todo.pop()
        if isinstance(edge, Node) and edge not in seen and not edge.zero:
            seen.add(edge)
            todo.extend(edge.inputs)
    return seen
