"""What flows where: parameters that starve behind a cut, and terms of a loss that do not train."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.phases import belongs_to_an_early_phase
from gradsight.interp.switches import Switches
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Cut, Edge, Node, Tensor, leaves_of
from gradsight.model.values import AbsentGrad, Number, Opaque, cuts_of

LINEAR = {"add", "sub", "mul", "div", "neg", "mean", "sum", "stack", "cat", "add_", "sub_", "mul_", "div_", "index", "squeeze", "to"}  # fmt: skip
COMPARING = {
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "cosine_similarity", "MSELoss", "L1Loss", "SmoothL1Loss",
    "HuberLoss", "KLDivLoss", "CosineSimilarity", "cross_entropy", "CrossEntropyLoss", "binary_cross_entropy",
}  # fmt: skip
"""Functions that hold a prediction against a target."""
MEASURES = {"norm", "vector_norm", "matrix_norm", "sum"}
"""What a tensor is divided by to make it of unit size: its gradient depends on the divisor's."""
SCALING = {"__mul__", "__rmul__", "__truediv__"}
COPYING = {"copy", "number", "numpy"}
TERM_KINDS = {"number", "numpy", "detach", "data", "copy", "grad", "no_grad", "inference"}


class Flow(Switches):
    """Conclusions about gradients that do not arrive."""

    # -- starving parameters -----------------------------------------------------------------------------------------

    def step_parameters(self, optimizer: Opaque, site: Site) -> None:
        since = optimizer.state.get("last_step", optimizer.state["created"])
        runs = [run for run in self.backwards if run.tick > since]
        if runs and not self.gradients_unknown and not optimizer.state.get("escaped"):
            for parameter in self.parameters_of(optimizer):
                if parameter.requires_grad is True and parameter.is_leaf:
                    self.check_starved(parameter, runs, since, site)
        super().step_parameters(optimizer, site)
        optimizer.state["last_step"] = self.tick

    def check_starved(self, parameter: Tensor, runs: list[Any], since: int, site: Site) -> None:
        """A parameter is stepped, data of it reached a loss, and no gradient came back."""
        last = self.live_gradient_ticks.get(parameter, -1)
        if last > since or parameter in self.retired:
            self.fed[site.key, parameter] = self.tick
            return
        forgotten = self.loss_never_differentiated(parameter, site)
        causes = [cut for run in runs for cut in run.cuts if parameter in self.leaves_behind(cut)]
        if forgotten is not None and causes:
            if not any(forgotten.node in nodes_behind(cut.source.edge()) for cut in causes):
                steps = [Step("made", forgotten.site, f"nobody calls backward on {forgotten.label}")]
                self.emit("step-without-backward", site, steps, loss=forgotten.label)
                return
        self.starved.append((parameter, runs, site))
        self.starved_since.setdefault((site.key, parameter), self.tick)

    fed: dict[tuple[Any, Tensor], int]
    """Steps, by their place, and the parameters for which they had a gradient: when last."""
    starved: list[tuple[Tensor, list[Any], Site]]
    """Steps that had no gradient for a parameter, and the backwards before them."""
    starved_since: dict[tuple[Any, Tensor], int]

    def judge_starved(self) -> None:
        """A parameter that the same step moves in a later round is trained: the cut belongs to a phase.

        One that was moved at first and then never again has lost its gradient.
        """
        for parameter, runs, site in self.starved:
            known = (site.key, parameter)
            if self.fed.get(known, -1) < self.starved_since[known]:
                self.explain_absence(parameter, runs, site, stepped=True)

    retired: set[Tensor]
    """Parameters that gave their place in a module to others."""

    def loss_never_differentiated(self, parameter: Tensor, site: Site) -> Tensor | None:
        """A named scalar beside the step that depends on the parameter and had no backward."""
        for value in list(site.frame.namespace.values()):
            if isinstance(value, Tensor) and value.shape == () and value.node is not None and value.label:
                if value.node.walked is None and parameter in leaves_of([value.node]):
                    return value
        return None

    def explain_absence(self, parameter: Tensor, runs: list[Any], site: Site, stepped: bool = False) -> None:
        for run in reversed(runs):
            if parameter in run.zero_leaves:
                self.zero_gradient(parameter, run)
                return
            causes = [cut for cut in run.cuts if parameter in self.leaves_behind(cut)]
            if causes:
                blamed = [cut for cut in causes if not self.makes_target(cut, run)] if len(causes) > 1 else []
                cut = max(blamed or causes, key=lambda cut: (cut.tick, cut.serial))
                if not stepped or not belongs_to_an_early_phase(cut.site):
                    self.report_cut(cut, parameter, run)
                return

    def makes_target(self, cut: Cut, run: Any) -> bool:
        """Whether what was cut off is only held against a prediction: a target is meant to be constant."""
        found = False
        for node in nodes_behind(run.loss.edge()):
            for operand in node.operands:
                if cut in operand.cuts and operand.needs_grad() is False:
                    if node.op not in COMPARING:
                        return False
                    found = True
        return found

    def leaves_behind(self, cut: Cut) -> set[Tensor]:
        """The leaves whose gradient stops at the cut, through earlier cuts too."""
        known: set[Tensor] | None = self.cut_leaves.get(cut)
        if known is None:
            known = leaves_of(cut.edges)
            self.cut_leaves[cut] = known
        return known

    cut_leaves: dict[Cut, set[Tensor]]

    def report_cut(self, cut: Cut, parameter: Tensor, run: Any) -> None:
        hidden = next((leaf for leaf in run.leaves if cut in leaf.cuts and leaf in self.declared), None)
        steps = [Step("made", cut.source.site, "the value with a graph is made here")]
        if hidden is not None:
            steps.append(
                Step(
                    "made",
                    self.declared[hidden],
                    "requires_grad is switched on again here, which hides the cut",
                )
            )
        steps.append(Step("needed", run.site, "this backward ends at the cut"))
        steps += self.call_steps(cut.site)
        self.emit(
            "path-cut",
            cut.site,
            steps,
            cut=cut.kind,
            op=cut.op,
            source=cut.source.label,
            hidden=hidden is not None,
            parameter=parameter.label,
        )

    def add_gradient(self, leaf: Tensor, site: Site, zero: bool) -> None:
        """A gradient that backward leaves in `.grad` is a number for every later loss."""
        super().add_gradient(leaf, site, zero)
        grad, run = leaf.grad, self.backwards[-1] if self.backwards else None
        if isinstance(grad, Tensor) and grad.node is None and run is not None and run.site is site:
            grad.cuts = frozenset({Cut("grad", "backward", site, run.loss, self.tick)})

    def read_grad(self, tensor: Tensor, node: ast.AST) -> Any:
        value = super().read_grad(tensor, node)
        if isinstance(value, Tensor) and value.source is not None:
            value.cuts = value.source.cuts
        return value

    declared: dict[Tensor, Site]

    def leaf_declared(self, tensor: Tensor, site: Site) -> None:
        if tensor.cuts:
            self.declared[tensor] = site

    def zero_gradient(self, parameter: Tensor, run: Any) -> None:
        """The gradient arrives and is identically zero: find the operator that makes it so."""
        edge = run.loss.edge()
        todo: list[Edge] = [edge] if edge is not None else []
        seen: set[Node] = set()
        while todo:
            current = todo.pop()
            if not isinstance(current, Node) or current in seen:
                continue
            seen.add(current)
            if current.zero and parameter in leaves_of(current.inputs):
                self.emit(
                    "path-cut",
                    current.site,
                    [
                        Step("needed", run.site, "this backward brings back zeros only"),
                        *self.call_steps(current.site),
                    ],
                    cut="zero",
                    op=current.op,
                    source=parameter.label,
                    hidden=False,
                    parameter=parameter.label,
                )
                return
            todo.extend(current.inputs)

    def absent_grad_kept(self, absent: AbsentGrad) -> None:
        """A gradient that is None is printed or stored: if a cut is the reason, say so."""
        if absent.cause == "non-leaf":
            self.emit(
                "grad-of-non-leaf",
                absent.site,
                [Step("made", absent.owner.site, "made by an operation here"), *self.call_steps(absent.site)],
                target=absent.owner.label,
                used=False,
            )
        elif absent.cause == "never" and self.backwards:
            self.explain_absence(absent.owner, self.backwards, absent.site)

    def identical(self, left: Any, right: Any) -> Any:
        for absent, other in ((left, right), (right, left)):
            if isinstance(absent, AbsentGrad) and absent.cause == "non-leaf" and other is None:
                made = absent.owner.node
                if made is not None and made.walked is not None:
                    self.absent_grad_kept(absent)
        return super().identical(left, right)

    def note_read(self, value: Any, node: ast.AST) -> None:
        if isinstance(value, AbsentGrad):
            self.absent_grad_kept(value)
        elif isinstance(value, Tensor) and value.grad_of is not None and value.snapshot == "grad":
            leaf = value.grad_of
            if leaf in self.gradient_ticks and leaf not in self.live_gradient_ticks and self.backwards:
                self.explain_absence(leaf, self.backwards, self.site(node))
        super().note_read(value, node)

    def absent_grad_used(self, absent: AbsentGrad, node: ast.AST) -> None:
        before = len(self.events)
        if absent.cause == "never" and self.backwards:
            self.explain_absence(absent.owner, self.backwards, absent.site)
        if len(self.events) == before:
            super().absent_grad_used(absent, node)

    def mapping(self, node: ast.Dict) -> Any:
        result = super().mapping(node)
        for value in result.items.values():
            self.value_kept(value, node)
        return result

    def dict_comprehension(self, node: ast.DictComp) -> Any:
        result = super().dict_comprehension(node)
        for value in result.items.values():
            self.value_kept(value, node)
        return result

    def value_kept(self, value: Any, node: ast.AST) -> None:
        if isinstance(value, AbsentGrad):
            self.absent_grad_kept(value)
        elif isinstance(value, Tensor) and value.snapshot:
            self.note_read(value, node)

    # -- terms that do not train -------------------------------------------------------------------------------------

    def term_added(self, name: str, left: Tensor, right: Any, result: Any, node: ast.AST) -> None:
        if name not in ("__add__", "__radd__", "__sub__", "__rsub__", "__iadd__", "__isub__"):
            return
        if not isinstance(result, Tensor) or result.node is None:
            return
        if result.shape not in ((), None):
            self.derivative_added(left, right, result, node)
            return
        for with_graph, without in ((left, right), (right, left)):
            if not isinstance(with_graph, Tensor) or with_graph.needs_grad() is not True:
                continue
            if isinstance(without, Tensor):
                if without.shape != () or (
                    without.needs_grad() is not False and not self.only_hides(without)
                ):
                    continue
                if (edge := without.edge()) is not None:
                    self.hidden_term(leaves_of([edge]), with_graph, result, node)
                    continue
            elif not isinstance(without, Number):
                continue
            for cut in sorted(cuts_of(without), key=order_of):
                if cut.kind in TERM_KINDS:
                    self.terms.append((result.node, cut, self.site(node), with_graph))

    def derivative_added(self, left: Any, right: Any, result: Tensor, node: ast.AST) -> None:
        """A derivative without a graph beside what it is the derivative of, or beside one with: `u_t - alpha * u_xx`."""
        for with_graph, without in ((left, right), (right, left)):
            if not isinstance(with_graph, Tensor) or not isinstance(without, Tensor) or result.node is None:
                continue
            for cut in sorted(without.cuts, key=order_of) if without.needs_grad() is False else ():
                if cut.kind == "grad" and cut.op == "autograd.grad":
                    if is_derivative(with_graph) or cut.source.node in nodes_behind(with_graph.edge()):
                        self.derivatives.append((result.node, cut, self.site(node)))

    derivatives: list[tuple[Node, Cut, Site]]
    """Sums of a derivative with a graph and one without."""

    def hidden_term(self, leaves: set[Tensor], partner: Tensor, result: Tensor, node: ast.AST) -> None:
        """A term whose leaves are copies that were declared leaves again."""
        cuts = [cut for leaf in leaves for cut in leaf.cuts if cut.kind in COPYING]
        self.terms += [(result.node, cut, self.site(node), partner) for cut in sorted(cuts, key=order_of)]

    def only_hides(self, tensor: Tensor) -> bool:
        """Whether every leaf behind a value was cut off from what it was made of and declared a leaf again."""
        edge = tensor.edge()
        leaves = leaves_of([edge]) if edge is not None else set()
        return bool(leaves) and all(leaf in self.declared and leaf.cuts for leaf in leaves)

    def tensor_operator(self, name: str, tensor: Tensor, other: Any, node: ast.AST) -> Any:
        result = super().tensor_operator(name, tensor, other, node)
        if type(other) is Number and other.cuts and name in SCALING and isinstance(result, Tensor):
            for cut in sorted(other.cuts, key=order_of):
                wanted = measures(cut, tensor) if name == "__truediv__" else computes_on_parameter(cut)
                if wanted and cut.kind == "number" and result.node is not None:
                    self.normalised.append((result.node, cut, self.site(node)))
        return result

    normalised: list[tuple[Node, Cut, Site]]
    """Tensors divided by a number that measures themselves, or scaled by what `math` made of a parameter."""

    def augment(self, node: ast.AugAssign, current: Any, operand: Any) -> Any:
        result = super().augment(node, current, operand)
        kind = type(node.op).__name__
        if isinstance(current, Tensor) and kind in ("Add", "Sub"):
            self.term_added("__iadd__" if kind == "Add" else "__isub__", current, operand, result, node)
        return result

    terms: list[Any]

    def backward_done(self, run: Any, given: dict[str, Any]) -> None:
        super().backward_done(run, given)
        if self.terms:
            self.judge_terms(run)
        ended: Site = run.site
        for node, cut, site in self.derivatives:
            if node.walked is ended and self.trains(self.leaves_behind(cut), run):
                steps = [
                    Step("read", site, "used beside a derivative that has a graph"),
                    Step("needed", ended, "this backward takes it for a constant"),
                    *self.call_steps(cut.site),
                ]
                self.emit(
                    "penalty-without-graph", cut.site, steps, cut=cut.kind, op=cut.op, source=cut.source.label
                )
        for node, cut, site in self.normalised:
            if node.walked is ended and (
                not computes_on_parameter(cut) or self.trains(self.leaves_behind(cut), run)
            ):
                steps = [
                    Step("read", site, "used as a factor here"),
                    Step("needed", ended, "this backward takes it for a constant"),
                    *self.call_steps(cut.site),
                ]
                self.emit("term-cut", cut.site, steps, cut=cut.kind, op=cut.op, source=cut.source.label)

    def judge_terms(self, run: Any) -> None:
        edge = run.loss.edge()
        linear: set[Node] = set()
        todo: list[Edge] = [edge] if edge is not None else []
        while todo:
            current = todo.pop()
            if isinstance(current, Node) and current not in linear:
                linear.add(current)
                if current.op in LINEAR:
                    todo.extend(current.inputs)
        for node, cut, site, partner in self.terms:
            if node not in linear:
                continue
            behind = self.leaves_behind(cut)
            trainable = {leaf for leaf in behind if leaf.requires_grad is True}
            if not trainable or not self.trains(trainable, run) or self.is_of_the_past(cut, run):
                continue
            if cut.kind != "grad" and self.reaches(partner, cut.source):
                continue
            kind = "penalty-without-graph" if cut.kind == "grad" else "term-cut"
            steps = [
                Step("read", site, "added to the loss here"),
                Step("needed", run.site, "this backward does not see the term"),
                *self.call_steps(cut.site),
            ]
            self.emit(kind, cut.site, steps, cut=cut.kind, op=cut.op, source=cut.source.label)

    def is_of_the_past(self, cut: Cut, run: Any) -> bool:
        """Whether what was cut off had its own backward before: a running average of earlier rounds."""
        node = cut.source.node
        return (
            cut.kind != "grad" and node is not None and node.freed is not None and node.freed is not run.site
        )

    def trains(self, leaves: set[Tensor], run: Any) -> bool:
        """Whether these leaves are meant to learn from this backward: an optimizer has them, or it reaches one of them."""
        held = {tensor for optimizer in self.optimizers for tensor in self.parameters_of(optimizer)}
        return bool(leaves & held) or bool(leaves & run.leaves)

    def reaches(self, partner: Tensor, source: Tensor) -> bool:
        """Whether the term's source is part of the other term already, so that the cut one only shifts its value."""
        start, wanted = partner.node, source.node
        if source is partner or (wanted is not None and wanted is start):
            return True
        todo: list[Edge] = [start] if start is not None and wanted is not None else []
        seen: set[Node] = set()
        while todo:
            current = todo.pop()
            if current is wanted:
                return True
            if isinstance(current, Node) and current not in seen and current.op in LINEAR:
                seen.add(current)
                todo.extend(current.inputs)
        return False

    def graph_tensor_wrapped(self, value: Tensor, parameter: Tensor, node: ast.AST) -> None:
        site = self.site(node)
        cut = Cut("parameter", "nn.Parameter", site, value, self.tick)
        parameter.cuts = parameter.cuts | {cut}
        if value.is_leaf or value.needs_grad() is not True:
            return
        frame = self.frame
        if (
            frame.function is not None
            and frame.function.name == "forward"
            and frame.owner is not None
            and frame.owner.kind == "module"
        ):
            self.emit(
                "path-cut",
                site,
                [Step("made", value.site, "the value with a graph is made here")],
                cut="parameter",
                op="nn.Parameter",
                source=value.label,
                hidden=False,
                parameter="",
            )


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


def order_of(cut: Cut) -> tuple[int, int, str]:
    """Cuts in the order in which they were made; sets of them have none."""
    return (cut.tick, cut.site.line, cut.source.label)


def nodes_behind(start: Edge | None) -> set[Node]:
    """Every node that a backward from here executes."""
    seen: set[Node] = set()
    todo: list[Edge] = [start] if start is not None else []
    while todo:
        edge = todo.pop()
        if isinstance(edge, Node) and edge not in seen:
            seen.add(edge)
            todo.extend(edge.inputs)
    return seen
