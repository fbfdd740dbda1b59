"""Backward: walking the graph, checking what was kept, filling `.grad`, and what follows from it."""

from __future__ import annotations

from typing import Any

from gradsight.interp.path_state import PathState, RaisedError, assumption_of
from gradsight.interp.syntax import arm_not_taken, calls_backward, decides_argument, spreads_keywords
from gradsight.interp.tensors.backward_faults import BackwardFaults
from gradsight.interp.tensors.shapes import (
    MANY_ITEMS,
    PER_ITEM,
    certainly_differ,
    certainly_not_scalar,
    spelled,
)
from gradsight.model.sites import Site, Syntax
from gradsight.model.tensors import (
    IGNORANT,
    Cut,
    Edge,
    Maybe,
    Node,
    RequiresGrad,
    Tensor,
    Write,
    nodes_and_leaves,
)
from gradsight.model.trace import (
    AbsentGradUsed,
    BackwardRun,
    CheckpointRefused,
    GradientRefused,
    GradRequested,
    GraphFound,
    NotScalar,
    Walked,
)
from gradsight.model.values import AbsentGrad, Mapping, Seq, Unknown, Value, tensors_in
from gradsight.ops.traits import having

WITH_BIAS = frozenset(
    "Linear linear Bilinear bilinear Conv1d Conv2d Conv3d conv1d conv2d conv3d addmm addmv".split()
)
GIVES_CONSTANTS = having("gives-constants")
"""`max` and its like read an order or places in what they save: their gradient is a constant, for torch too."""
LENIENT = ("allow_unused", "materialize_grads")
"""Options of autograd.grad that allow inputs outside the graph; `**options` may hold them."""

WALKED_PER_STEP = 8
"""How many nodes of a graph cost a backward as much as one syntax node."""
MOST_WALKED_AGAIN = 30_000
"""So many nodes the backwards of a path go through; after that, only through those that no backward has gone through."""


class BackwardEngine(BackwardFaults):
    """The engine that runs gradients."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.retaining: list[Tensor] = []
        self.walked = 0
        """How many nodes the backwards of this path have gone through."""
        self.runs: dict[Site, BackwardRun] = {}
        self.entered: set[Tensor] = set()
        """What unknown modules returned, and backwards came to them by."""

    def run_backward(
        self,
        losses: list[Tensor],
        site: Site,
        retain: Value,
        create: Value,
        gradient_given: bool,
        inputs: list[Tensor] | None = None,
        how: str = "backward",
        assumption: str = "",
        argument: str = "grad_outputs",
    ) -> BackwardRun | None:
        """`backward()` or `autograd.grad`: report what fails, then do what it does."""
        self.path.tick += 1
        loss = losses[0]
        flag = loss.needs_grad()
        cuts = frozenset(cut for tensor in losses for cut in tensor.cuts)
        if flag is False:
            if not assumption:
                self.no_graph(loss, site, cuts, how)
            return None
        self.path.tell(GraphFound(site, isinstance(flag, Maybe) and flag.weak))
        if not gradient_given and certainly_not_scalar(loss.shape) and how != "assumed":
            self.path.refuse(NotScalar(loss, site, how, argument), assumption_of(flag))
        elif not gradient_given and how == "backward" and has_one_per_item(loss):
            self.path.told_premises.add(MANY_ITEMS)
            self.path.refuse(NotScalar(loss, site, how, argument, MANY_ITEMS), MANY_ITEMS)
        edges: list[Edge] = [edge for tensor in losses if (edge := tensor.edge()) is not None]
        if how == "backward" and isinstance(flag, Maybe) and flag.weak:
            self.prove_operands(edges, site.node)
        executed = executed_for(edges, inputs) if inputs is not None else None
        if executed is not None and how != "assumed":
            self.check_checkpoints(executed, site, how)
        run = self.walk(edges, loss, site, cuts, how, assumption, executed)
        run.is_bare = run.is_bare and bool(cuts) and not (retain or create)
        if not run.leaves and isinstance(flag, Maybe) and flag.weak and not run.is_bare:
            run.leaves |= self.only_trained() if how == "backward" and inputs is None else set()
            if not run.leaves:
                # A graph that is not known: whose gradients it fills is not known either.
                self.path.gradients_unknown = True
        keep = retain is True or (retain is None and create is True)
        if how == "assumed":
            return run
        unknown = isinstance(retain, Unknown) or isinstance(create, Unknown)
        if not keep and not unknown:
            self.free(edges, site, executed)
        return run

    def check_checkpoints(self, executed: set[Edge], site: Site, how: str) -> None:
        """A reentrant checkpoint fills the gradients of all leaves inside, so torch refuses it where some are asked for."""
        inner = next((edge for edge in executed if isinstance(edge, Node) and edge.reentrant), None)
        if inner is not None:
            self.path.refuse(CheckpointRefused(inner.site, site, how))

    def walk(
        self,
        edges: list[Edge],
        loss: Tensor,
        site: Site,
        cuts: frozenset[Cut],
        how: str,
        assumption: str,
        executed: set[Edge] | None = None,
    ) -> BackwardRun:
        """Visit every node that this backward executes."""
        leaves: set[Tensor] = set()
        live: set[Tensor] = set()
        seen: set[tuple[Node, bool]] = set()
        todo: list[tuple[Edge, bool]] = [(edge, False) for edge in edges]
        behind: list[tuple[str, tuple[Edge, bool]]] = []
        """What lies behind code that is not known, and the premise under which backward gets there."""
        twice: Node | None = None
        of_modules: list[Node] = []
        is_open = is_unseen = False
        zeros = executed is not None
        grown: Node | None = None
        walked: list[Node] = []
        while todo or behind:
            if not todo:
                premise, step = behind.pop()
                assumption = assumption or premise
                todo.append(step)
            edge, dead = todo.pop()
            if executed is not None and edge not in executed:
                continue
            if isinstance(edge, Tensor):
                leaves.add(edge)
                if not dead:
                    live.add(edge)
                continue
            if (edge, dead) in seen or (dead and (edge, False) in seen):
                continue
            seen.add((edge, dead))
            if self.walked > MOST_WALKED_AGAIN and executed is None and (known := self.run_through(edge)):
                leaves |= known.leaves
                live |= known.leaves - known.zero_leaves if not dead else set()
                is_open, is_unseen = is_open or known.open, True
                zeros = zeros or known.zeros
                continue
            if edge.walked is not None and edge.freed is None and how == "backward" and grown is None:
                if self.from_earlier_round(edge, site):
                    grown = edge
            edge.walked = site
            walked.append(edge)
            is_open = is_open or edge.open or is_doubtful(edge.requires)
            is_unseen = is_unseen or edge.is_unseen
            if edge.freed is not None:
                # What it had saved is gone; where it always saves something, torch refuses.
                if edge.holds == "always" and (twice is None or edge.tick > twice.tick):
                    twice = edge
                elif edge.holds == "layers":
                    of_modules.append(edge)
            else:
                for saved in edge.saved:
                    if saved.counter.version != saved.version and saved.noticed:
                        self.saved_is_stale(edge, saved, site, how, assumption)
                    elif saved.storage.epoch != saved.epoch and not dead:
                        self.saved_is_changed(edge, saved, site, how, assumption)
            below = dead or edge.zero
            zeros = zeros or edge.zero
            for inner in edge.inputs:
                further = (inner, below or inner is edge.overwritten)
                if edge.premise:
                    behind.append((edge.premise, further))
                else:
                    todo.append(further)
        entered = ways_in([[loss], *(edge.operands for edge in walked)])
        shared = [node for node in of_modules if self.is_shared(node, entered)]
        twice = twice or self.module_again(shared, edges)
        self.entered |= entered
        if twice is not None and how != "assumed":
            self.graph_already_freed(twice, loss, site, how)
        self.walked += len(walked)
        self.path.spend(len(walked) // WALKED_PER_STEP)
        self.path.tell(Walked(walked, site, grown))
        run = BackwardRun(site, loss, leaves, cuts, self.path.tick)
        run.zero_leaves = leaves - live
        run.zeros = zeros
        run.open = is_open
        run.is_bare = not (leaves or is_open or is_unseen) and is_repeated(site)
        if is_open:
            self.path.gradients_unknown = True
        self.runs[site] = run
        return run

    def only_trained(self) -> set[Tensor]:
        """What the one optimizer of a program holds: a loss of which nothing is known but that it is differentiated is for that."""
        if len(self.path.optimizers) != 1:
            return set()
        held = {one for one in self.path.optimizers[0].parameters() if one.requires_grad is True}
        if held:
            self.path.premises.setdefault("the loss depends on all that the optimizer holds")
        return held

    def prove_operands(self, edges: list[Edge], node: Syntax) -> None:
        """Nothing that is known brings the graph which a backward needs: unknown operands do, as far as they had modules.

        It is that of the modules which the code that made them was given.
        """
        visited = nodes_and_leaves(tuple(edges))
        behind = [one for one in visited if isinstance(one, Node) and one.unproved]
        if any(isinstance(one, Tensor) for one in visited):
            return
        for made in behind:
            for value in made.unproved:
                if value.graph is None and value.tensor is None:
                    self.entry.prove_differentiated(value, node)
                if value.graph is not None:
                    made.inputs, made.open = [*made.inputs, value.graph], False
            made.unproved = []

    def module_again(self, freed: list[Node], edges: list[Edge]) -> Node | None:
        """A call of an unknown module that an earlier backward went through, and this one too."""
        return next((node for node in freed if leads_by_itself(edges, node)), None)

    def is_shared(self, node: Node, entered: set[Tensor]) -> bool:
        """Whether two backwards have layers of an unknown module in common.

        Where several optimizers share the work, the items that a module returns may come from parts that have nothing in
        common (an actor, a critic); one and the same item comes from the same layers.
        """
        if len(self.path.optimizers) <= 1:
            return True
        return any(tensor.node is node for tensor in entered & self.entered)

    def run_through(self, node: Node) -> BackwardRun | None:
        """The last backward that went through a node whose graph is still there; what it met is not looked at again."""
        run = self.runs.get(node.walked) if node.walked is not None and node.freed is None else None
        if run is not None:
            self.path.gap(
                "a graph that many backwards go through is looked at in its new parts", kind="budget"
            )
        return run

    def free(self, edges: list[Edge], site: Site, executed: set[Edge] | None = None) -> None:
        """Without retain_graph, what the nodes kept is gone."""
        todo = list(edges)
        while todo:
            edge = todo.pop()
            if isinstance(edge, Node) and edge.freed is None and (executed is None or edge in executed):
                edge.freed = site
                todo.extend(edge.inputs)

    # -- gradients ---------------------------------------------------------------------------------------------------

    def accumulate(self, run: BackwardRun, only: set[Tensor] | None = None, in_place: bool = True) -> None:
        """Fill the `.grad` of the leaves that were reached, and of tensors that retain it.

        With `create_graph` torch gives the leaf a new `.grad`, the sum of both, and leaves the old tensor as it is.
        """
        for leaf in run.leaves:
            if only is not None and leaf not in only:
                continue
            if isinstance(leaf.requires_grad, Maybe):
                leaf.grad = (
                    leaf.grad if leaf.grad is not None else Unknown("gradient of a tensor that may need none")
                )
                continue
            self.add_gradient(leaf, run.site, leaf in run.zero_leaves, in_place)
        for tensor in self.retaining:
            if tensor.node is not None:
                self.add_gradient(tensor, run.site, False, in_place)

    def add_gradient(self, leaf: Tensor, site: Site, zero: bool, in_place: bool) -> None:
        leaf.thread = self.thread
        current = leaf.grad
        if isinstance(current, Tensor) and in_place:
            current.storage.epoch += 1
            current.storage.content = (current.storage.serial, current.storage.epoch)
            current.counter.version += 1
            write = Write(site, "backward", current, "accumulate", current.counter)
            write.tick = self.path.tick
            current.storage.writes.append(write)
        elif current is None or isinstance(current, (Tensor, Unknown)):
            # Whatever was assigned before: after a backward it is a tensor.
            grad = Tensor(site, shape=leaf.shape, dtype=leaf.dtype)
            grad.grad_of = leaf
            grad.label = f"{leaf.label}.grad" if leaf.label else ""
            leaf.grad = grad
        self.path.gradient_ticks[leaf] = self.path.tick
        if not zero:
            self.path.live_gradient_ticks[leaf] = self.path.tick
        self.cut_at_gradient(leaf.grad, site)

    def cut_at_gradient(self, grad: Value, site: Site) -> None:
        """A gradient that backward leaves in `.grad` is a number for every later loss."""
        run = self.path.backwards[-1] if self.path.backwards else None
        if isinstance(grad, Tensor) and grad.node is None and run is not None and run.site is site:
            grad.cuts = frozenset({Cut("grad", "backward", site, run.loss, self.path.tick)})

    thread: Any = None

    def backward_call(
        self,
        loss: Tensor,
        args: list[Value],
        kwargs: dict[str, Value],
        node: Syntax,
        argument: str = "gradient",
    ) -> None:
        """`loss.backward(gradient, retain_graph, create_graph, inputs)`."""
        site = self.path.site(node)
        names = ("gradient", "retain_graph", "create_graph", "inputs")
        given = {**dict(zip(names, args)), **kwargs}
        # `retain_variables` is the name that `retain_graph` had at first.
        given.setdefault("retain_graph", given.get("retain_variables"))
        if decides_argument(node, "retain_graph", [one.node for one in self.path.decisions]):
            given["retain_graph"] = Unknown("whether the graph is kept", "bool")
        gradient = given.get("gradient")
        inputs = given.get("inputs")
        only = set(tensors_in(inputs)) if inputs is not None else None
        if isinstance(inputs, Seq) and inputs.exact and not inputs.items:
            self.path.refuse(GradientRefused(loss, "", "", site, "inputs", "backward"))
        self.check_gradients([loss], gradient, site, "backward")
        placeholder = BackwardRun(site, loss, set(), loss.cuts, self.path.tick)
        self.path.backwards.append(placeholder)
        run = self.run_backward(
            [loss],
            site,
            given.get("retain_graph"),
            given.get("create_graph"),
            gradient is not None,
            tensors_in(inputs) if only else None,
            argument=argument,
        )
        if run is None:
            self.path.backwards.pop()
            return
        self.path.backwards[-1] = run
        self.accumulate(run, only, in_place=not given.get("create_graph"))
        self.nn.backward_done(run, given)

    def grad_call(self, args: list[Value], kwargs: dict[str, Value], node: Syntax) -> Value:
        """`torch.autograd.grad(outputs, inputs, ...)`."""
        names = (
            "outputs",
            "inputs",
            "grad_outputs",
            "retain_graph",
            "create_graph",
            "only_inputs",
            "allow_unused",
        )
        given = {**dict(zip(names, args)), **kwargs}
        site = self.path.site(node)
        outputs = tensors_in(taken_for_tensor(given.get("outputs")))
        wanted = taken_for_tensor(given.get("inputs"))
        inputs = tensors_in(wanted)
        create = given.get("create_graph", False)
        if not outputs:
            return self.grad_results(
                wanted, [Unknown("gradient of an unknown value") for _ in range(max(1, len(inputs)))]
            )
        gradients = given.get("grad_outputs")
        self.check_gradients(outputs, gradients, site, "autograd.grad")
        run = self.run_backward(outputs, site, given.get("retain_graph"), create, gradients is not None, inputs, "autograd.grad")  # fmt: skip
        if run is None:
            return self.grad_results(
                wanted, [Unknown("gradient of a value without graph") for _ in range(max(1, len(inputs)))]
            )
        results: list[Any] = []
        spread = spreads_keywords(node)
        lenient = any(given.get(option, spread) not in (None, False) for option in LENIENT)
        for tensor in inputs:
            if not lenient:
                self.path.tell(GradRequested(outputs, tensor, site))
            elif given.get("materialize_grads", spread) is False and not self.is_reached(outputs, tensor):
                results.append(self.absent_gradient(outputs))
                continue
            result = Tensor(site, shape=tensor.shape, dtype=tensor.dtype)
            result.label = ""
            if create is True:
                given_gradients = tensors_in(given.get("grad_outputs"))
                is_curved = self.is_curved(outputs, tensor, given_gradients)
                flag: RequiresGrad = is_curved or Maybe("the gradient may be a constant", weak=True)
                result.requires_grad = flag
                sources = [edge for out in [*outputs, *given_gradients] if (edge := out.edge()) is not None]
                gradient_node = Node("autograd.grad", site, sources, flag, self.path.tick)
                gradient_node.customs = self.customs_between(outputs, inputs)
                result.node = gradient_node
            elif create is False:
                result.cuts = frozenset(
                    Cut("grad", "autograd.grad", site, out, self.path.tick) for out in outputs
                )
            else:
                result.requires_grad = Maybe("create_graph is not known", weak=True)
            results.append(result)
        if not inputs:
            results = [Unknown("gradient of an unknown value")]
        return self.grad_results(wanted, results)

    def is_curved(self, outputs: list[Tensor], wanted: Tensor, gradients: list[Tensor]) -> bool:
        """Whether the gradient depends on a tensor that requires grad: that of `(2 * w).sum()` is a constant for torch too."""
        edges = [edge for output in outputs if (edge := output.edge()) is not None]
        passed = [edge for edge in executed_for(edges, [wanted]) if isinstance(edge, Node)]
        if any(node.zero or node.overwritten is not None for node in passed):
            # What was filled hands back zeros, whatever it was computed from.
            return False
        # What a product saves has no part in the gradient of its bias.
        is_bias = wanted.shape is not None and len(wanted.shape) == 1
        return any(gradient.needs_grad() is not False for gradient in gradients) or any(
            node.customs or any(saved.tensor.needs_grad() is not False for saved in node.saved)
            for node in passed
            if node.op not in GIVES_CONSTANTS
            and not (is_bias and any(one is wanted for one in node.operands) and node.op in WITH_BIAS)
        )

    def customs_between(self, outputs: list[Tensor], inputs: list[Tensor]) -> tuple[Any, ...]:
        """The custom Functions that a gradient came through."""
        edges = [edge for output in outputs if (edge := output.edge()) is not None]
        passed = executed_for(edges, inputs)
        return tuple(custom for edge in passed if isinstance(edge, Node) for custom in edge.customs)

    def check_gradients(self, outputs: list[Tensor], given: Value, site: Site, how: str) -> None:
        """A gradient has the shape of its output, and there are as many as outputs."""
        gradients = list(given.items) if isinstance(given, Seq) and given.exact else [given]
        if isinstance(given, Seq) and (not given.exact or how == "backward"):
            return
        if isinstance(given, Seq) and len(gradients) != len(outputs):
            counts = (str(len(gradients)), str(len(outputs)))
            self.path.refuse(GradientRefused(outputs[0], *counts, site, "count", how))
            return
        for output, gradient in zip(outputs, gradients):
            if isinstance(gradient, Tensor) and certainly_differ(output.shape, gradient.shape):
                shapes = (spelled(gradient.shape), spelled(output.shape))
                self.path.refuse(GradientRefused(output, *shapes, site, "shape", how))

    def gradients_for(self, roots: Value, given: Value, site: Site) -> list[Value]:
        """The gradients of `autograd.backward(roots, given)`, one for each root; none where they cannot be told apart."""
        losses = list(roots.items) if isinstance(roots, Seq) and roots.exact else [roots]
        outputs = [loss for loss in losses if isinstance(loss, Tensor)]
        if not isinstance(given, Seq) or not given.exact or len(outputs) != len(losses) or not outputs:
            return []
        if len(given.items) != len(losses):
            self.check_gradients(outputs, given, site, "autograd.backward")
            return []
        return list(given.items)

    def is_reached(self, outputs: list[Tensor], wanted: Tensor) -> bool:
        """Whether the graph of the outputs leads to a tensor."""
        edges = tuple(edge for output in outputs if (edge := output.edge()) is not None)
        return wanted.edge() in nodes_and_leaves(edges)

    def absent_gradient(self, outputs: list[Tensor]) -> Value:
        """None for a tensor that the outputs do not depend on, where all of their graph is known."""
        edges = tuple(edge for output in outputs if (edge := output.edge()) is not None)
        nodes = [edge for edge in nodes_and_leaves(edges) if isinstance(edge, Node)]
        known = (
            all(node.requires is True and not node.open for node in nodes) and not self.path.gradients_unknown
        )
        return None if known else Unknown("gradient of a tensor that may be unused")

    def grad_results(self, wanted: Value, results: list[Value]) -> Value:
        exact = not isinstance(wanted, Seq) or (wanted.exact and len(results) == len(wanted.items))
        if isinstance(wanted, (Unknown, Mapping)):
            exact = False
        return Seq("tuple", results, exact)

    def absent_grad_used(self, absent: AbsentGrad, node: Syntax) -> None:
        """None was read from `.grad` and is used as a tensor: Python refuses."""
        self.path.tell(AbsentGradUsed(absent, node))
        known = absent.cause in ("cleared", "needs-none", "without")
        if self.path.frame.expecting and (
            known or (absent.cause == "never" and not self.backward_passed_by())
        ):
            raise RaisedError(Unknown("what Python raises"))

    def backward_passed_by(self) -> bool:
        """Whether an undecided condition led this path past a backward."""
        for decision in self.path.decisions:
            outcome = self.path.branches.get(id(decision.key), (0, decision.choice))[1]
            if calls_backward(arm_not_taken(decision.node, outcome)):
                return True
        return False


def taken_for_tensor(value: Value) -> Value:
    """The tensor that a value which is not known was taken for, where it was used as one."""
    return value.tensor if isinstance(value, Unknown) and value.tensor is not None else value


def is_doubtful(requires: RequiresGrad) -> bool:
    """Whether a node was perhaps not recorded for another reason than that an operand is not known."""
    return isinstance(requires, Maybe) and requires.weak and requires is not IGNORANT


def is_repeated(site: Site) -> bool:
    """Whether a place, or a call that led to it, stands in a loop."""
    inner: Site | None = site
    while inner is not None:
        if inner.loops:
            return True
        inner = inner.call
    return False


def executed_for(edges: list[Edge], inputs: list[Tensor]) -> set[Edge]:
    """The nodes that `inputs=` makes torch execute: those on a way from the outputs to a wanted tensor."""
    wanted = {edge for tensor in inputs if (edge := tensor.edge()) is not None}
    parents: dict[Edge, list[Edge]] = {}
    todo = list(edges)
    seen: set[Edge] = set(todo)
    while todo:
        edge = todo.pop()
        if isinstance(edge, Node) and edge not in wanted:
            for inner in edge.inputs:
                parents.setdefault(inner, []).append(edge)
                if inner not in seen:
                    seen.add(inner)
                    todo.append(inner)
    reached: set[Edge] = set()
    back = [edge for edge in wanted if edge in seen]
    while back:
        edge = back.pop()
        for parent in parents.get(edge, ()):
            if parent not in reached:
                reached.add(parent)
                back.append(parent)
    return reached | {edge for edge in wanted if isinstance(edge, Tensor)}


def ways_in(used: list[list[Tensor]]) -> set[Tensor]:
    """What calls of unknown modules returned, or items of that, among the tensors that a graph was computed with."""
    return {
        tensor
        for operands in used
        for tensor in operands
        if tensor.node is not None and tensor.node.holds == "layers"
    }


def leads_by_itself(edges: list[Edge], old: Node) -> bool:
    """Whether a graph comes to an old call of an unknown module other than through a new one, which may have cut off what it got."""
    todo, seen = list(edges), set[Node]()
    while todo:
        edge = todo.pop()
        if edge is old:
            return True
        if isinstance(edge, Node) and edge not in seen:
            seen.add(edge)
            if edge.op != old.op or edge.freed is not None:
                todo += edge.inputs
    return False


def has_one_per_item(loss: Tensor) -> bool:
    """Whether it is a loss of torch without a reduction, of as many items as nobody knows."""
    is_counted = loss.shape is not None and None not in loss.shape
    return not is_counted and bool((loss.attributes or {}).get(PER_ITEM))
