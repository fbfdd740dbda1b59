"""Terms of a loss that do not train: numbers, detached values and derivatives without a graph beside what has one."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_flow import LINEAR, GradientFlow, nodes_behind
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.name_hints import suggests
from gradsight.model.passed_cuts import cuts_of
from gradsight.model.sites import Site
from gradsight.model.tensors import Cut, Edge, Node, Tensor, leaves_of
from gradsight.model.trace import Applied, Augmented, Backward, Combined, GradRequested
from gradsight.model.values import Number, Seq, Unknown

MEASURES = {"norm", "vector_norm", "matrix_norm", "sum"}
"""What a tensor is divided by to make it of unit size: its gradient depends on the divisor's."""
SCALING = {"__mul__", "__rmul__", "__truediv__"}
ELEMENTWISE = {"add", "sub", "mul", "div", "neg", "add_", "sub_", "mul_", "div_", "to"}
"""What has a single number as its result only if all that it is given are single numbers."""
COPIES = {"clone", "contiguous", "_to_copy", "to"}
COPYING = {"copy", "number", "numpy"}
WITHOUT_MODE = {"no_grad", "inference"}
CHOOSING = {"max", "min", "maximum", "minimum", "fmax", "fmin"}
TAKEN_OUT = {"copy", "data", "detach"}
DERIVED = {
    "beside": "used here together with a gradient that has a graph",
    "step": "this step moves the weight by it",
}
NotedTerm = tuple[Node, Cut, Site, Tensor]
"""The node that joins a term to another one, the cut in it, where they are joined, and the other one."""
PICKING = {"index", "squeeze"}
PLACING = {"index_put_"}
"""`losses[1] = fit + 0.1 * penalty`: terms that are places of one tensor, which is summed."""
MOST_STACKED = 16
TERM_KINDS = {"number", "numpy", "detach", "data", "copy", "grad", "no_grad", "inference", "op"}


class CutTerms:
    """Remembers where a term without a graph joins one that has it, and speaks when a backward comes through."""

    def __init__(self, path: Path, claims: Claims, flow: GradientFlow) -> None:
        self.path = path
        self.claims = claims
        self.flow = flow
        self.terms: list[NotedTerm] = []
        self.stacked: list[NotedTerm] = []
        """Terms that were put side by side; none of them is picked out again where only a sum or a mean follows."""
        self.shapeless: list[NotedTerm] = []
        """The same, where it is not known that they are single numbers: they are if their sum is differentiated as one."""
        self.derivatives: list[tuple[Node, Cut, Site, str]] = []
        """Sums of a derivative without a graph and of one that has it, or of the weight that it is the derivative of."""
        self.by_parameters: set[Any] = set()
        """Where gradients of parameters were asked for: the mean of several, or those of real data, are constants that others are held against."""
        self.scaled: set[Tensor] = set()
        """Single numbers without a graph, scaled by something that is not known: a weight of the configuration."""
        self.scaled_shapeless: set[Tensor] = set()
        self.normalised: list[tuple[Node, Cut, Site]] = []
        """Tensors divided by a number that measures themselves, or scaled by what `math` made of a parameter."""
        self.chosen: list[tuple[Node, Cut, Site]] = []
        """The larger or smaller of two, of which one was made of a detached copy of what the other is made of."""

        self.wanted: set[Tensor] = set()
        """What derivatives were taken by, parameters aside."""
        self.skips: list[tuple[Node, Cut, Site]] = []
        """Sums of what a branch made of a value and of the value itself, cut off."""

    def term_added(self, name: str, left: Tensor, right: Any, result: Any, node: ast.AST) -> None:
        if name not in ("__add__", "__radd__", "__sub__", "__rsub__", "__iadd__", "__isub__"):
            return
        if not isinstance(result, Tensor) or result.node is None:
            return
        if result.shape != ():
            self.derivative_added(left, right, result, node)
            if name in ("__add__", "__radd__", "__iadd__"):
                self.skip_added(left, right, result.node, node)
        if result.shape not in ((), None):
            return
        known = [one.tensor if isinstance(one, Unknown) else one for one in (left, right)]
        for with_graph, without in (known, known[::-1]):
            if isinstance(with_graph, Tensor) and with_graph.needs_grad() is True:
                self.note_term(with_graph, without, result.node, node, self.terms)

    def note_term(
        self, with_graph: Tensor, without: Any, joined: Node, node: ast.AST, terms: list[NotedTerm]
    ) -> None:
        """A single number without a graph beside one that has it."""
        if isinstance(without, Tensor) and without in self.scaled:
            pass
        elif isinstance(without, Tensor) and without.shape is None and self.is_constant(without):
            terms = self.shapeless
        elif isinstance(without, Tensor):
            if without.shape != ():
                return
            if without.needs_grad() is not False and not self.only_hides(without):
                self.derivative_of_data(without, with_graph, joined, node)
                return
            if (edge := without.edge()) is not None:
                self.hidden_term(leaves_of([edge]), with_graph, joined, node)
                return
        elif not isinstance(without, Number):
            return
        cuts = [cut for cut in outermost_of(cuts_of(without)) if cut.kind in TERM_KINDS]
        for cut in sorted(blamed_of(cuts), key=order_of):
            terms.append((joined, cut, self.path.site(node), with_graph))

    def terms_stacked(self, fact: Applied) -> None:
        """`torch.stack([fit, 0.1 * penalty]).sum()`."""
        result, listed = fact.result, fact.first
        if not isinstance(result, Tensor) or result.node is None or not isinstance(listed, Seq):
            return
        items = listed.items[:MOST_STACKED]
        partner = next(
            (one for one in items if type(one) is Tensor and one.shape == () and one.needs_grad() is True),
            None,
        )
        for item in items if partner is not None else ():
            if item is not partner and isinstance(item, Tensor) and item.shape == () and partner is not None:
                self.note_term(partner, item, result.node, fact.node, self.stacked)

    def is_constant(self, tensor: Tensor) -> bool:
        return tensor.needs_grad() is False or tensor in self.scaled_shapeless

    def derivative_added(self, left: Any, right: Any, result: Tensor, node: ast.AST) -> None:
        """A derivative without a graph beside what it is the derivative of, or beside one with: `u_t - alpha * u_xx`."""
        for with_graph, without in ((left, right), (right, left)):
            if not isinstance(with_graph, Tensor) or not isinstance(without, Tensor) or result.node is None:
                continue
            for cut in sorted(without.cuts, key=order_of) if without.needs_grad() is False else ():
                if cut.kind == "grad" and cut.op == "autograd.grad":
                    beside = cut.site.key not in self.by_parameters and (
                        is_derivative(with_graph) or cut.source.node in nodes_behind(with_graph.edge())
                    )
                    if beside or self.steps_down(with_graph, cut):
                        how = "beside" if beside else "step"
                        self.derivatives.append((result.node, cut, self.path.site(node), how))

    def steps_down(self, weight: Tensor, cut: Cut) -> bool:
        """Whether a weight that an optimizer trains is moved by its own derivative: `fast = weight - rate * gradient`.

        Who writes `create_graph=False` wants the derivative as a constant.
        """
        edge, call = weight.edge(), cut.site.node
        if edge is None or not isinstance(call, ast.Call):
            return False
        if any(keyword.arg in (None, "create_graph") for keyword in call.keywords) or len(call.args) > 3:
            return False
        held = {tensor for optimizer in self.path.optimizers for tensor in self.path.parameters_of(optimizer)}
        leaves = leaves_of([edge])
        if not leaves or not all(leaf.is_parameter or leaf in held for leaf in leaves):
            return False
        return edge in (
            self.flow.leaves_behind(cut) if isinstance(edge, Tensor) else nodes_behind(cut.source.edge())
        )

    def skip_added(self, left: Any, right: Any, joined: Node, node: ast.AST) -> None:
        """`branch(x) + x.clone().detach()`: the way past the branch is cut."""
        for with_graph, without in ((left, right), (right, left)):
            if not isinstance(with_graph, Tensor) or not isinstance(without, Tensor):
                continue
            if with_graph.needs_grad() is not True or without.needs_grad() is not False:
                continue
            for cut in sorted(without.cuts, key=order_of):
                source = uncopied(cut.source.node)
                if cut.kind in ("detach", "data") and source is not None and is_copy_of(without, cut):
                    behind = nodes_behind(with_graph.edge())
                    if source in behind and any(
                        applies_parameters(inner) for inner in behind - nodes_behind(source)
                    ):
                        self.skips.append((joined, cut, self.path.site(node)))

    def hidden_term(self, leaves: set[Tensor], partner: Tensor, joined: Node, node: ast.AST) -> None:
        """A term whose leaves are copies that were declared leaves again."""
        cuts = [cut for leaf in leaves for cut in leaf.cuts if cut.kind in COPYING]
        self.terms += [(joined, cut, self.path.site(node), partner) for cut in sorted(cuts, key=order_of)]

    def derivative_of_data(self, term: Tensor, partner: Tensor, joined: Node, node: ast.AST) -> None:
        """`(du_dt + rate * t).pow(2).mean()`: the graph of the term leads to the points alone, and the derivative has none."""
        edge = term.edge()
        if edge is not None and self.wanted and leaves_of([edge]) <= self.wanted:
            cuts = [cut for cut in outermost_of(term.cuts) if cut.kind == "grad"]
            self.terms += [(joined, cut, self.path.site(node), partner) for cut in sorted(cuts, key=order_of)]

    def on_grad_requested(self, fact: GradRequested) -> None:
        if fact.wanted.is_parameter:
            self.by_parameters.add(fact.site.key)
        else:
            self.wanted.add(fact.wanted)

    def only_hides(self, tensor: Tensor) -> bool:
        """Whether every leaf behind a value was cut off from what it was made of and declared a leaf again."""
        edge = tensor.edge()
        leaves = leaves_of([edge]) if edge is not None and self.flow.declared else set()
        return bool(leaves) and all(leaf in self.flow.declared and leaf.cuts for leaf in leaves)

    def factor_applied(self, fact: Combined) -> None:
        name, tensor, other, result = fact.operator, fact.left, fact.right, fact.result
        if isinstance(other, Unknown) and name in SCALING and isinstance(result, Tensor):
            constant = isinstance(tensor, Tensor) and tensor.needs_grad() is False
            if constant and result.shape in ((), None):
                (self.scaled if result.shape == () else self.scaled_shapeless).add(result)
        if isinstance(other, Number) and other.cuts and name in SCALING and isinstance(result, Tensor):
            for cut in sorted(other.cuts, key=order_of):
                wanted = measures(cut, tensor) if name == "__truediv__" else computes_on_parameter(cut)
                if wanted and cut.kind == "number" and result.node is not None:
                    self.normalised.append((result.node, cut, self.path.site(fact.node)))

    def on_augmented(self, fact: Augmented) -> None:
        kind = type(fact.statement.op).__name__
        if isinstance(fact.current, Tensor) and kind in ("Add", "Sub"):
            name = "__iadd__" if kind == "Add" else "__isub__"
            self.term_added(name, fact.current, fact.operand, fact.result, fact.statement)
            self.graph_begun(fact)

    def graph_begun(self, fact: Augmented) -> None:
        """`total += term`, where the total so far was a single number without a graph: it is a term that is cut off."""
        total, term = fact.current, fact.operand
        if (
            total is not fact.result
            or total.shape != ()
            or total.node is None
            or not isinstance(term, Tensor)
        ):
            return
        if total.node.inputs == [term.edge()]:
            cuts = [cut for cut in outermost_of(total.cuts - term.cuts) if cut.kind in TERM_KINDS]
            for cut in sorted(blamed_of(cuts), key=order_of):
                self.terms.append((total.node, cut, self.path.site(fact.statement), term))

    def on_combined(self, fact: Combined) -> None:
        self.term_added(fact.operator, fact.left, fact.right, fact.result, fact.node)
        self.factor_applied(fact)

    def on_applied(self, fact: Applied) -> None:
        """`torch.min(ratio.detach() * advantage, ratio.clamp(low, high) * advantage)`: where the first is the smaller, nothing learns."""
        result, name = fact.result, fact.name.rpartition(".")[2]
        if name == "stack":
            self.terms_stacked(fact)
        if name not in CHOOSING or not isinstance(result, Tensor):
            return
        operands = [fact.first, *fact.arguments]
        tensors = list(dict.fromkeys(one for one in operands if isinstance(one, Tensor)))
        if len(tensors) != 2 or result.node is None:
            return
        for with_graph, without in (tensors, tensors[::-1]):
            if with_graph.needs_grad() is not True or without.needs_grad() is not False:
                continue
            behind = nodes_behind(with_graph.edge())
            self.chosen += [
                (result.node, cut, self.path.site(fact.node))
                for cut in sorted(without.cuts, key=order_of)
                if cut.kind in TAKEN_OUT and cut.source.node is not None and cut.source.node in behind
            ]

    def on_backward(self, fact: Backward) -> None:
        run = fact.run
        if self.terms:
            self.conclude_terms(run, self.terms, LINEAR)
        if self.stacked:
            self.conclude_terms(run, self.stacked, LINEAR - PICKING)
        if self.shapeless and is_of_single_number(run):
            self.conclude_terms(run, self.shapeless, ELEMENTWISE)
        ended: Site = run.site
        for node, cut, site, how in self.derivatives:
            if node.walked is ended and self.trains(self.flow.leaves_behind(cut), run):
                steps = [
                    Step("read", site, DERIVED[how]),
                    Step("needed", ended, "this `backward()` treats it as a constant"),
                    *self.path.call_steps(cut.site),
                ]
                self.claims.add(
                    "penalty-without-graph",
                    cut.site,
                    steps,
                    cut=cut.kind,
                    op=cut.op,
                    source=cut.source.label,
                    how=how,
                )
        for node, cut, site in self.chosen:
            if node.walked is ended:
                steps = [
                    Step("read", site, "the other side has the same value in the graph"),
                    Step("needed", ended, "this `backward()` reaches it on one side only"),
                    *self.path.call_steps(cut.site),
                ]
                self.claims.add(
                    "term-cut",
                    cut.site,
                    steps,
                    cut=cut.kind,
                    op=cut.op,
                    source=cut.source.label,
                    one_side=True,
                )
        for node, cut, site in self.skips:
            if node.walked is ended and self.trains(self.flow.leaves_behind(cut), run):
                steps = [
                    Step("read", site, "added to what a layer made of the same value here"),
                    Step("needed", ended, "this `backward()` does not take the way past the layer"),
                    *self.path.call_steps(cut.site),
                ]
                self.claims.add(
                    "term-cut", cut.site, steps, cut=cut.kind, op=cut.op, source=cut.source.label, skip=True
                )
        for node, cut, site in self.normalised:
            if node.walked is ended and (
                not computes_on_parameter(cut) or self.trains(self.flow.leaves_behind(cut), run)
            ):
                steps = [
                    Step("read", site, "used as a factor here"),
                    Step("needed", ended, "this `backward()` treats it as a constant"),
                    *self.path.call_steps(cut.site),
                ]
                self.claims.add("term-cut", cut.site, steps, cut=cut.kind, op=cut.op, source=cut.source.label)

    def conclude_terms(self, run: Any, terms: list[NotedTerm], passed: set[str]) -> None:
        edge = run.loss.edge()
        linear: set[Node] = set()
        todo: list[Edge] = [edge] if edge is not None else []
        while todo:
            current = todo.pop()
            if isinstance(current, Node) and current not in linear:
                linear.add(current)
                if current.op in passed or current.op in PLACING:
                    todo.extend(current.inputs)
        for node, cut, site, partner in terms:
            if node not in linear:
                continue
            behind = self.flow.leaves_behind(cut)
            trainable = {leaf for leaf in behind if leaf.requires_grad is True}
            if not trainable or not self.trains(trainable, run) or self.is_of_the_past(cut, run):
                continue
            if cut.kind != "grad" and self.reaches(partner, cut.source):
                continue
            kind = "penalty-without-graph" if cut.kind == "grad" else "term-cut"
            steps = [
                Step("read", site, "added to the loss here"),
                Step("needed", run.site, "this `backward()` does not see the term"),
                *self.path.call_steps(cut.site),
            ]
            self.claims.add(kind, cut.site, steps, cut=cut.kind, op=cut.op, source=cut.source.label)

    def is_of_the_past(self, cut: Cut, run: Any) -> bool:
        """Whether what was cut off had its own backward before: a running average of earlier rounds."""
        node = cut.source.node
        return (
            cut.kind != "grad" and node is not None and node.freed is not None and node.freed is not run.site
        )

    def trains(self, leaves: set[Tensor], run: Any) -> bool:
        """Whether these leaves are meant to learn from this backward: an optimizer has them, or it reaches one of them."""
        held = {tensor for optimizer in self.path.optimizers for tensor in self.path.parameters_of(optimizer)}
        return bool(leaves & held) or bool(leaves & run.leaves)

    def reaches(self, partner: Tensor, source: Tensor) -> bool:
        """Whether the term's source is part of the other term already, so that the cut one only shifts its value."""
        start, wanted = partner.node, source.node
        if source is partner or (wanted is not None and wanted is start and wanted.holds != "layers"):
            return True
        todo: list[Edge] = [start] if start is not None and wanted is not None else []
        seen: set[Node] = set()
        # Several results of a module that is not known have one node: there it is the tensor that tells.
        is_one_of_several = wanted is not None and wanted.holds == "layers"
        while todo:
            current = todo.pop()
            if current is wanted and not is_one_of_several:
                return True
            if isinstance(current, Node) and current not in seen and current.op in LINEAR:
                if is_one_of_several and any(one is source for one in current.operands):
                    return True
                seen.add(current)
                todo.extend(current.inputs)
        return False


def is_of_single_number(run: Any) -> bool:
    """Whether a backward is called as torch allows for a single number alone: without a gradient to begin with."""
    call = run.site.node
    return isinstance(call, ast.Call) and not call.keywords and (not call.args or bool(run.site.library))


def is_derivative(tensor: Tensor) -> bool:
    """Whether a value is a derivative, or a multiple of one, that can be differentiated further."""
    edge = tensor.edge()
    while isinstance(edge, Node) and edge.op in LINEAR and edge.inputs:
        edge = (
            edge.inputs[-1]
            if len(edge.inputs) == 1 or not isinstance(edge.inputs[0], Node)
            else edge.inputs[0]
        )
    return isinstance(edge, Node) and edge.op == "autograd.grad"


def is_copy_of(tensor: Tensor, cut: Cut) -> bool:
    """Whether a value is what was cut off and nothing else: `x.detach()`, `x.clone().detach()`, `x.data`."""
    return tensor.storage.content == cut.source.storage.content and tensor.shape == cut.source.shape


def uncopied(node: Node | None) -> Node | None:
    """What a clone is a copy of."""
    while node is not None and node.op in COPIES and len(node.inputs) == 1:
        inner = node.inputs[0]
        node = inner if isinstance(inner, Node) else None
    return node


def applies_parameters(node: Node) -> bool:
    return any(isinstance(edge, Tensor) and edge.is_parameter for edge in node.inputs)


def measures(cut: Cut, tensor: Tensor) -> bool:
    """Whether a number is the size of the tensor that it divides."""
    made = cut.source.node
    return (
        made is not None
        and made.op in MEASURES
        and any(operand is tensor or operand.node is tensor.node for operand in made.operands)
    )


def computes_on_parameter(cut: Cut) -> bool:
    """Whether `math` was given a parameter, or a multiple of one: a function of it was wanted, not a constant."""
    if not cut.op.startswith("math."):
        return False
    edge = cut.source.edge()
    while isinstance(edge, Node) and edge.op in LINEAR and len(edge.inputs) == 1:
        edge = edge.inputs[0]
    return isinstance(edge, Tensor) and edge.is_parameter


def outermost_of(cuts: frozenset[Cut]) -> list[Cut]:
    """Those cuts of a value behind which no later one was made: a term that is cut off as a whole had its graph until then."""
    earlier = {other for cut in cuts if cut.source.needs_grad() is True for other in cut.source.cuts}
    return [cut for cut in cuts if cut not in earlier]


def blamed_of(cuts: list[Cut]) -> list[Cut]:
    """Which of the cuts of one term to blame: what was computed with grad mode off, and weights, are meant to be constants.

    They are, where something else of the term was cut off by itself: `log_prob.detach() * advantage.detach()`.
    """
    meant = [
        cut
        for cut in cuts
        if cut.kind in WITHOUT_MODE
        or any(suggests(hint, cut.source.label) for hint in ("weight of a loss", "target"))
    ]
    return [cut for cut in cuts if cut not in meant] or cuts


def order_of(cut: Cut) -> tuple[int, int, str]:
    """Cuts in the order in which they were made; sets of them have none."""
    return (cut.tick, cut.site.line, cut.source.label)
