"""Results that go on cut off while something else still trains what computed them.

`mse_loss(decoder(z.detach()), x) + weight * z.pow(2).mean()`: the encoder learns from the penalty alone, which asks nothing
of the data; `l1_loss(back(there(a).detach()), a)` beside other terms that train both: whether `a` can be had back is what
`there` was to learn; `critic(fake.detach())` beside `l1_loss(fake, real)` in the loss of the generator.  A cascade whose stages have losses of their own, a probe on features and a target look alike, and
are none of both.

*Features*: what was cut off before a layer was applied to it.  *Way*: the nodes of the loss that lead to the features, or
to what they were computed from.  A *penalty* is a way without a constant tensor and without another layer.
"""

from __future__ import annotations

from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_flow import DIFFERING, GradientFlow, nodes_behind
from gradsight.detect.mode_cuts import steps_of_mode
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Cut, Node, Tensor
from gradsight.model.trace import Backward

KINDS = {"detach", "data", "numpy", "number", "copy", "sample", "no_grad", "inference"}
MOST_NODES = 4000
"""Larger graphs are not looked at."""
MOST_FEATURES = 8


class CutResult:
    """A cut value that a layer of the loss was applied to, and the parameters that do not hear of it."""

    __slots__ = ("cut", "layers", "lost")

    def __init__(self, cut: Cut, layers: list[Node], lost: set[Tensor]) -> None:
        self.cut = cut
        self.layers = layers
        self.lost = lost


class CutFeatures:
    """Looks at the ways that are left to a loss whose features were cut off."""

    def __init__(self, path: Path, claims: Claims, flow: GradientFlow) -> None:
        self.path = path
        self.claims = claims
        self.flow = flow
        self.taught: set[Tensor] = set()
        """Leaves that some backward reaches by more than a penalty."""
        self.punished: list[tuple[CutResult, Site]] = []
        self.judged: set[Any] = set()

    def on_backward(self, fact: Backward) -> None:
        run = fact.run
        cuts = [cut for cut in run.cuts if cut.kind in KINDS and cut.source.node is not None]
        if not cuts:
            self.taught |= run.leaves
            return
        key = (run.site.key, frozenset(cut.site.key for cut in cuts))
        if key in self.judged:
            return
        self.judged.add(key)
        graph = nodes_behind(run.loss.edge())
        found = self.features_of(cuts, graph, run) if len(graph) <= MOST_NODES else []
        if len(graph) <= MOST_NODES and len(cuts) <= MOST_FEATURES:
            self.check_judges(cuts, graph, run)
            self.check_copies(cuts, graph, run)
        if not found or len(found) > MOST_FEATURES:
            self.taught |= run.leaves
            return
        behind: set[Node] = set()
        for one in found:
            behind |= nodes_behind(one.cut.source.edge())
        lost = only_punished(set().union(*(one.lost for one in found)), graph, behind)
        self.taught |= run.leaves - lost
        if any(one.lost & lost for one in found):
            self.punished += [
                (CutResult(one.cut, one.layers, one.lost & lost), run.site)
                for one in found
                if one.lost & lost
            ]
            return
        self.taught |= run.leaves
        for one in found:
            if self.is_to_come_back(one, graph):
                self.report(one, run.site)

    def finish(self) -> None:
        for one, site in self.punished:
            if not one.lost & self.taught:
                self.report(one, site)

    def features_of(self, cuts: list[Cut], graph: set[Node], run: Any) -> list[CutResult]:
        held = {tensor for optimizer in self.path.optimizers for tensor in self.path.parameters_of(optimizer)}
        found = []
        for cut in sorted(cuts, key=lambda cut: (cut.tick, cut.serial)):
            lost = self.flow.leaves_behind(cut) & held & run.leaves
            freed = cut.source.node.freed if cut.source.node is not None else None
            if lost and freed in (None, run.site):
                layers = [node for node in graph if is_layer(node) and takes(node, cut)]
                if layers:
                    found.append(CutResult(cut, layers, lost))
        return found

    def is_to_come_back(self, one: CutResult, graph: set[Node]) -> bool:
        """Whether what the features were computed from is compared with what is made of them, by layers used elsewhere too."""
        given = {
            operand.storage
            for node in nodes_behind(one.cut.source.edge())
            for operand in node.operands
            if operand.needs_grad() is False and operand.shape != ()
        }
        weights = {edge for node in one.layers for edge in node.inputs if isinstance(edge, Tensor)}
        elsewhere = any(
            node not in one.layers and not takes(node, one.cut) and weights & set(node.inputs)
            for node in graph
        )
        return elsewhere and any(
            any(operand.needs_grad() is False and operand.storage in given for operand in node.operands)
            and not nodes_behind(node).isdisjoint(one.layers)
            for node in graph
            if node.op in DIFFERING
        )

    def check_judges(self, cuts: list[Cut], graph: set[Node], run: Any) -> None:
        """A result that is compared with data goes cut off into a network of another optimizer, and not otherwise.

        In the loss of the generator the critic is to judge what is generated; what comes back from it has no other use.
        """
        for cut in sorted(cuts, key=lambda cut: (cut.tick, cut.serial)):
            source, lost = cut.source.node, self.flow.leaves_behind(cut) & run.leaves
            takers = [node for node in graph if takes(node, cut)]
            if source is None or not lost or not takers or not is_compared(source, graph):
                continue
            layers = [node for node in graph if is_layer(node) and not nodes_behind(node).isdisjoint(takers)]
            weights = {edge for node in layers for edge in node.inputs if isinstance(edge, Tensor)}
            mine, others = set[Tensor](), set[Tensor]()
            for optimizer in self.path.optimizers:
                held = set(self.path.parameters_of(optimizer))
                (mine if held & lost else others).update(held)
            if not weights or weights & mine or not weights <= others:
                continue
            if not any(
                weights & set(node.inputs) and source in nodes_behind(node)
                for node in graph
                if node not in layers
            ):
                self.report(CutResult(cut, layers, lost), run.site)

    def check_copies(self, cuts: list[Cut], graph: set[Node], run: Any) -> None:
        """`torch.tensor(features)` on the way to a layer: who wants a constant writes `detach`."""
        held = {tensor for optimizer in self.path.optimizers for tensor in self.path.parameters_of(optimizer)}
        for cut in (one for one in cuts if one.kind == "copy"):
            lost = self.flow.leaves_behind(cut) & held & run.leaves
            takers = {node for node in graph if takes(node, cut)} if lost else set()
            layers = [node for node in graph if is_layer(node) and not nodes_behind(node).isdisjoint(takers)]
            if layers:
                self.report(CutResult(cut, layers, lost), run.site)

    def report(self, one: CutResult, backward: Site) -> None:
        cut = one.cut
        steps = [
            Step("made", cut.source.site, "still in the graph here"),
            *steps_of_mode(cut),
            Step(
                "read",
                one.layers[0].site,
                "the rest of the loss is computed from the value without its graph",
            ),
            Step("needed", backward, "this `backward()` trains it by other terms only"),
            *self.path.call_steps(cut.site),
        ]
        lost = min(one.lost, key=lambda leaf: leaf.serial)
        self.claims.add(
            "term-cut", cut.site, steps, cut=cut.kind, op=cut.op, source=cut.source.label, parameter=lost.label
        )  # fmt: skip


def is_layer(node: Node) -> bool:
    """Whether a node applies parameters to something."""
    return any(isinstance(edge, Tensor) and edge.is_parameter for edge in node.inputs)


def is_compared(source: Node, graph: set[Node]) -> bool:
    """Whether a value is held against one that nothing learns through."""
    return any(
        any(operand.node is source for operand in node.operands)
        and any(operand.needs_grad() is False for operand in node.operands)
        for node in graph
        if node.op in DIFFERING
    )


def takes(node: Node, cut: Cut) -> bool:
    """Whether an operand of a node is a value without a graph that comes from behind the cut."""
    return any(operand.needs_grad() is False and cut in operand.cuts for operand in node.operands)


def only_punished(leaves: set[Tensor], graph: set[Node], behind: set[Node]) -> set[Tensor]:
    """The leaves that a gradient comes to by penalties alone; what the features are computed by is no way of its own.

    An embedding that the layers behind the cut use as well is taught by them.
    """
    asking = {node for node in graph if node not in behind and not is_of_penalty(node)}
    todo = list(asking)
    while todo:
        for edge in todo.pop().inputs:
            if isinstance(edge, Node) and edge not in asking:
                asking.add(edge)
                todo.append(edge)
    taught = {edge for node in asking for edge in node.inputs if isinstance(edge, Tensor)}
    return leaves - taught


def is_of_penalty(node: Node) -> bool:
    """Whether nothing is asked by a node but of the features themselves: no data, no other layer, no other network.

    A log-probability hands the loss of a sample back to who drew it, as a number if need be.
    """
    return not (
        node.op == "log_prob"
        or is_layer(node)
        or any(isinstance(edge, Tensor) for edge in node.inputs)
        or any(operand.needs_grad() is not True and operand.shape != () for operand in node.operands)
    )


def ways_to(leaves: set[Tensor], graph: set[Node]) -> set[Node]:
    """The nodes of a graph from which a gradient comes to one of these leaves."""
    users: dict[Node, list[Node]] = {}
    todo = []
    for node in graph:
        for edge in node.inputs:
            if isinstance(edge, Node):
                users.setdefault(edge, []).append(node)
            elif edge in leaves:
                todo.append(node)
    found: set[Node] = set()
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo.extend(users.get(node, ()))
    return found


def is_penalty(way: set[Node]) -> bool:
    """Whether nothing is asked on a way but of the features themselves."""
    return bool(way) and all(is_of_penalty(node) for node in way)
