"""Backward: walking the graph, checking what was kept, filling `.grad`, and what follows from it."""

from __future__ import annotations

import ast
import re
from typing import Any

from gradsight.interp.machine import assumption_of
from gradsight.interp.regions import overlaps
from gradsight.interp.shapes import certainly_not_scalar
from gradsight.interp.sites import Site
from gradsight.interp.tensors import Cut, Edge, Maybe, Node, Saved, Tensor, Write, leaves_of
from gradsight.interp.values import AbsentGrad, Mapping, Seq, Unknown, tensors_in
from gradsight.interp.writes import Writer
from gradsight.model.events import Step

INFERENCE_NAMES = re.compile(
    r"predict|infer|eval|valid|test|generat|sampl|score|metric|embed|encode", re.IGNORECASE
)
"""Functions with such names run without grad mode on purpose."""


class BackwardRun:
    """One backward call: what it reached and which cuts lay in its data."""

    __slots__ = ("cuts", "leaves", "loops", "loss", "open", "site", "tick", "zero_leaves")

    def __init__(
        self, site: Site, loss: Tensor, leaves: set[Tensor], cuts: frozenset[Cut], tick: int
    ) -> None:
        self.site = site
        self.loss = loss
        self.leaves = leaves
        self.cuts = cuts
        self.tick = tick
        self.loops = site.loops
        self.zero_leaves: set[Tensor] = set()
        self.open = False
        """The graph has parts that are not known."""


class Backward(Writer):
    """The engine that runs gradients."""

    def run_backward(
        self,
        losses: list[Tensor],
        site: Site,
        retain: Any,
        create: Any,
        gradient_given: bool,
        inputs: list[Tensor] | None = None,
        how: str = "backward",
        assumption: str = "",
    ) -> BackwardRun | None:
        """`backward()` or `autograd.grad`: report what fails, then do what it does."""
        self.tick += 1
        loss = losses[0]
        flag = loss.needs_grad()
        cuts = frozenset(cut for tensor in losses for cut in tensor.cuts)
        if flag is False:
            if not assumption:
                self.no_graph(loss, site, cuts, how)
            return None
        if not gradient_given and certainly_not_scalar(loss.shape) and how != "assumed":
            text = self.text_of_target(site)
            self.emit("non-scalar-backward", site, [Step("made", loss.site, "made here, with more than one element")],
                      assumption_of(flag), target=text, how=how, shape=str(list(loss.shape)))  # fmt: skip
        edges: list[Edge] = [edge for tensor in losses if (edge := tensor.edge()) is not None]
        executed = executed_for(edges, inputs) if inputs is not None else None
        run = self.walk(edges, loss, site, cuts, how, assumption, executed)
        keep = retain is True or (retain is None and create is True)
        if how == "assumed":
            return run
        unknown = isinstance(retain, Unknown) or isinstance(create, Unknown)
        if not keep and not unknown:
            self.free(edges, site, executed)
        return run

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
        twice: Node | None = None
        is_open = False
        grown: Node | None = None
        while todo:
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
            if edge.walked is not None and edge.freed is None and how == "backward" and grown is None:
                if self.from_earlier_round(edge, site):
                    grown = edge
            edge.walked = site
            is_open = is_open or edge.open or (isinstance(edge.requires, Maybe) and edge.requires.weak)
            if edge.freed is not None and edge.holds == "always":
                if twice is None or edge.tick > twice.tick:
                    twice = edge
            else:
                for saved in edge.saved:
                    if saved.counter.version != saved.version:
                        self.saved_is_stale(edge, saved, site, how, assumption)
                    elif saved.storage.epoch != saved.epoch:
                        self.saved_is_changed(edge, saved, site, how, assumption)
            if self.written_without_grad:
                self.check_written_without_grad(edge, site)
            below = dead or edge.zero
            for inner in edge.inputs:
                todo.append((inner, below or inner is edge.overwritten))
        if twice is not None and how != "assumed":
            self.graph_already_freed(twice, loss, site, how)
        if grown is not None:
            self.emit("graph-grows", site, [Step("saved", grown.site, "recorded in an earlier round here")])
        run = BackwardRun(site, loss, leaves, cuts, self.tick)
        run.zero_leaves = leaves - live
        run.open = is_open
        if is_open:
            self.gradients_unknown = True
        return run

    written_without_grad: list[Any]

    def check_written_without_grad(self, node: Node, site: Site) -> None:
        """The node read a tensor of the graph whose value had been changed behind autograd's back."""
        for target, write in self.written_without_grad:
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
                        *self.call_steps(write.site),
                    ]
                    self.emit(
                        "graph-written-without-grad",
                        write.site,
                        steps,
                        op=write.op,
                        target=self.text_of_target(write.site),
                    )

    def free(self, edges: list[Edge], site: Site, executed: set[Edge] | None = None) -> None:
        """Without retain_graph, what the nodes kept is gone."""
        todo = list(edges)
        while todo:
            edge = todo.pop()
            if isinstance(edge, Node) and edge.freed is None and (executed is None or edge in executed):
                edge.freed = site
                todo.extend(edge.inputs)

    # -- what fails --------------------------------------------------------------------------------------------------

    def saved_is_stale(self, node: Node, saved: Saved, site: Site, how: str, assumption: str) -> None:
        """A kept tensor has another version: torch refuses."""
        if not saved.certain or _weak(node) or "running_" in saved.role:
            return
        writes = [
            write
            for write in saved.storage.writes
            if write.counter is saved.counter and write.version > saved.version
        ]
        if not writes:
            return
        write = writes[0]
        premise = assumption or assumption_of(node.requires)
        by_step = write.mode == "optimizer"
        kept = "result" if saved.role.startswith("result") else "input"
        name = saved.label or saved.tensor.label or self.text_of_target(write.site)
        steps = [
            Step("saved", node.site, f"{node.op} keeps its {kept} for backward here"),
            *(Step("written", other.site, f"written again by {other.op} here") for other in writes[1:3] if other.site.key != write.site.key),
        ]  # fmt: skip
        if how != "assumed":
            steps.append(Step("needed", site, f"this {how} needs the old value"))
        steps += list(self.call_steps(write.site))
        self.emit("saved-overwritten", write.site, steps, premise, op=node.op, write=write.op, target=name,
                  what=kept, by_step=by_step, mode=write.mode, how=how, written=self.text_of_target(write.site),
                  is_parameter=saved.tensor.is_parameter or (saved.tensor.is_leaf and saved.tensor.requires_grad is True), key=None)  # fmt: skip

    def saved_is_changed(self, node: Node, saved: Saved, site: Site, how: str, assumption: str) -> None:
        """A kept tensor has other content under the same version: torch does not notice."""
        if not saved.certain or _weak(node) or "running_" in saved.role:
            return
        writes = [
            write for write in saved.storage.writes
            if (write.epoch > saved.epoch and write.counter is not saved.counter) or (write.epoch > saved.epoch and write.mode == "silent")
        ]  # fmt: skip
        writes = [write for write in writes if overlaps(write.region, saved.region)]
        if not writes:
            return
        write = writes[0]
        premise = assumption or assumption_of(node.requires)
        name = saved.label or saved.tensor.label
        kept = "result" if saved.role.startswith("result") else "input"
        steps = [Step("saved", node.site, f"{node.op} keeps its {kept} for backward here")]
        if how != "assumed":
            steps.append(Step("needed", site, f"this {how} uses the changed value"))
        steps += list(self.call_steps(write.site))
        self.emit("saved-changed-silently", write.site, steps, premise, op=node.op, write=write.op, target=name,
                  written=self.text_of_target(write.site), by_step=write.mode == "silent" and "step" in write.op,
                  is_parameter=saved.tensor.is_parameter or (saved.tensor.is_leaf and saved.tensor.requires_grad is True))  # fmt: skip

    def graph_already_freed(self, node: Node, loss: Tensor, site: Site, how: str) -> None:
        if _weak(node) or node.freed is None:
            return
        first = node.freed
        steps = [
            Step("needed", first, "the first backward frees the graph here"),
            Step("saved", node.site, f"{node.op} of the shared part is recorded here"),
        ]
        if first.key == site.key and self.from_earlier_round(node, site):
            place = self.carry_site(loss, site) or site
            if place.key != site.key:
                steps.append(Step("needed", site, "this backward goes through it again in the next round"))
            self.emit(
                "state-carried",
                place,
                steps,
                assumption_of(node.requires),
                op=node.op,
                loss=self.text_of_target(site),
            )
            return
        self.emit("backward-twice", site, steps, assumption_of(node.requires), op=node.op, loss=self.text_of_target(site),
                  first_line=first.line, how=how)  # fmt: skip

    def from_earlier_round(self, node: Node, site: Site) -> bool:
        """Whether the node was recorded in an earlier round of a loop that the backward runs in."""
        rounds = dict(site.loops)
        return any(run in rounds and rounds[run] > number for run, number in node.site.loops)

    def carry_site(self, loss: Tensor, site: Site) -> Site | None:
        """Where the value that brings the old graph into this round was kept."""
        start = loss.edge()
        todo: list[Edge] = [start] if start is not None else []
        seen: set[Node] = set()
        carried: Tensor | None = None
        old: Node | None = None
        while todo:
            edge = todo.pop()
            if not isinstance(edge, Node) or edge in seen or edge.freed is not None:
                continue
            seen.add(edge)
            for tensor in edge.operands:
                inner = tensor.node
                if inner is None or not self.from_earlier_round(inner, site):
                    continue
                if inner.freed is not None or (
                    not self.from_earlier_round(edge, site) and leads_to_freed(inner)
                ):
                    if old is None or inner.tick > old.tick:
                        carried, old = tensor, inner
            for inner_edge in edge.inputs:
                if isinstance(inner_edge, Node) and inner_edge.freed is not None and old is None:
                    old = inner_edge
                todo.append(inner_edge)
        if old is None:
            return None
        if carried is not None and carried.kept_at is not None:
            return carried.kept_at
        if old.op.endswith("_") or old.op == "CopySlices":
            return old.site
        return self.outermost(old.site, site)

    def outermost(self, inner: Site, outer: Site) -> Site:
        """The place in the frame of `outer` through which `inner` was reached."""
        if inner.frame is outer.frame:
            return inner
        for caller in inner.callers():
            if caller.frame is outer.frame:
                return caller
        return inner

    def no_graph(self, loss: Tensor, site: Site, cuts: frozenset[Cut], how: str) -> None:
        """backward of a tensor that has no graph: torch refuses; the cause is the cut, if there is one."""
        text = self.text_of_target(site)
        causes = [cut for cut in cuts if any(True for _ in cut.edges)]
        certain = [cut for cut in causes if not isinstance(cut.source.requires_grad, Maybe)]
        if certain:
            cut = max(certain, key=lambda cut: (cut.tick, cut.serial))
            place = self.place_of_cut(cut, site)
            steps = [
                Step("made", cut.source.site, "the value with a graph is made here"),
                Step("needed", site, f"this {how} finds no graph"),
                *self.call_steps(cut.site),
            ]
            self.emit("backward-without-graph", place, steps, cut=self.word_for(cut), op=cut.op, loss=text,
                      source=cut.source.label, key=None)  # fmt: skip
        elif not causes and loss.requires_grad is False and loss.leaf_made and loss.node is None:
            self.emit("backward-without-graph", site, [Step("made", loss.site, "made here")], self.if_untouched(), cut="leaf", op="",
                      loss=text, source=loss.label)  # fmt: skip
        elif not causes and self.known_without_graph(loss):
            self.emit("backward-without-graph", site, [Step("made", loss.site, "made here, from tensors that need no gradient")],
                      self.if_untouched(), cut="none", op="", loss=text, source=loss.label)  # fmt: skip

    def if_untouched(self) -> str:
        """Code that is run by itself starts from a state that other code may have changed."""
        return "" if self.context == "script" else "nothing else sets what it is made of"

    def word_for(self, cut: Cut) -> str:
        """`left-off` for grad mode that a call of set_grad_enabled switched off for good; else the kind of the cut."""
        node = cut.site.node
        if (
            cut.kind == "no_grad"
            and isinstance(node, ast.Call)
            and "set_grad_enabled" in ast.unparse(node.func)
        ):
            return "left-off"
        return cut.kind

    def place_of_cut(self, cut: Cut, site: Site) -> Site:
        """Where to repair a cut: a helper that is meant to run without grad mode is right, calling it for a loss is not."""
        function = cut.site.frame.function
        owner = getattr(function, "name", "")
        if (
            self.word_for(cut) in ("no_grad", "inference")
            and INFERENCE_NAMES.search(owner)
            and cut.site.frame is not site.frame
        ):
            for caller in cut.site.callers():
                if caller.frame is site.frame:
                    return caller
        return cut.site

    def known_without_graph(self, loss: Tensor) -> bool:
        return loss.requires_grad is False and loss.dtype not in ("?",)

    # -- gradients ---------------------------------------------------------------------------------------------------

    def accumulate(self, run: BackwardRun, only: set[Tensor] | None = None) -> None:
        """Fill the `.grad` of the leaves that were reached, and of tensors that retain it."""
        for leaf in run.leaves:
            if only is not None and leaf not in only:
                continue
            if isinstance(leaf.requires_grad, Maybe):
                leaf.grad = (
                    leaf.grad if leaf.grad is not None else Unknown("gradient of a tensor that may need none")
                )
                continue
            self.add_gradient(leaf, run.site, leaf in run.zero_leaves)
        for tensor in self.retaining:
            if tensor.node is not None:
                self.add_gradient(tensor, run.site, False)

    def add_gradient(self, leaf: Tensor, site: Site, zero: bool) -> None:
        leaf.thread = self.thread
        current = leaf.grad
        if isinstance(current, Tensor):
            current.storage.epoch += 1
            current.counter.version += 1
            write = Write(site, "backward", current, "accumulate", current.counter)
            write.tick = self.tick
            current.storage.writes.append(write)
        elif current is None:
            grad = Tensor(site, shape=leaf.shape, dtype=leaf.dtype)
            grad.grad_of = leaf
            grad.label = f"{leaf.label}.grad" if leaf.label else ""
            leaf.grad = grad
        self.gradient_ticks[leaf] = self.tick
        if not zero:
            self.live_gradient_ticks[leaf] = self.tick

    gradients_unknown: bool = False
    retaining: list[Tensor]
    gradient_ticks: dict[Tensor, int]
    live_gradient_ticks: dict[Tensor, int]
    thread: Any = None

    def backward_call(self, loss: Tensor, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> None:
        """`loss.backward(gradient, retain_graph, create_graph, inputs)`."""
        site = self.site(node)
        names = ("gradient", "retain_graph", "create_graph", "inputs")
        given = {**dict(zip(names, args)), **kwargs}
        gradient = given.get("gradient")
        inputs = given.get("inputs")
        only = set(tensors_in(inputs)) if inputs is not None else None
        placeholder = BackwardRun(site, loss, set(), loss.cuts, self.tick)
        self.backwards.append(placeholder)
        run = self.run_backward(
            [loss], site, given.get("retain_graph"), given.get("create_graph"), gradient is not None
        )
        if run is None:
            self.backwards.pop()
            return
        self.backwards[-1] = run
        self.accumulate(run, only)
        self.backward_done(run, given)

    def backward_done(self, run: BackwardRun, given: dict[str, Any]) -> None:
        """Hook: a backward call is over."""

    def grad_call(self, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
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
        site = self.site(node)
        outputs = tensors_in(given.get("outputs"))
        wanted = given.get("inputs")
        inputs = tensors_in(wanted)
        create = given.get("create_graph", False)
        if not outputs:
            return self.grad_results(
                wanted, [Unknown("gradient of an unknown value") for _ in range(max(1, len(inputs)))]
            )
        run = self.run_backward(outputs, site, given.get("retain_graph"), create, given.get("grad_outputs") is not None, inputs, "autograd.grad")  # fmt: skip
        if run is None:
            return self.grad_results(
                wanted, [Unknown("gradient of a value without graph") for _ in range(max(1, len(inputs)))]
            )
        results: list[Any] = []
        for tensor in inputs:
            if given.get("allow_unused") in (None, False) and given.get("materialize_grads") in (None, False):
                self.check_in_graph(outputs, tensor, site)
            result = Tensor(site, shape=tensor.shape, dtype=tensor.dtype)
            result.label = ""
            if create is True:
                result.requires_grad = True
                gradient_node = Node("autograd.grad", site, [edge for out in outputs if (edge := out.edge()) is not None], True, self.tick)  # fmt: skip
                result.node = gradient_node
            elif create is False:
                result.cuts = frozenset(Cut("grad", "autograd.grad", site, out, self.tick) for out in outputs)
            else:
                result.requires_grad = Maybe("create_graph is not known", weak=True)
            results.append(result)
        if not inputs:
            results = [Unknown("gradient of an unknown value")]
        return self.grad_results(wanted, results)

    def grad_results(self, wanted: Any, results: list[Any]) -> Any:
        exact = not isinstance(wanted, Seq) or (wanted.exact and len(results) == len(wanted.items))
        if isinstance(wanted, (Unknown, Mapping)):
            exact = False
        return Seq("tuple", results, exact)

    def check_in_graph(self, outputs: list[Tensor], wanted: Tensor, site: Site) -> None:
        """autograd.grad refuses a tensor that the output does not depend on, or that needs no gradient."""
        if wanted.needs_grad() is False and not wanted.cuts:
            self.emit(
                "grad-of-unused",
                site,
                [Step("made", wanted.site, "made here, without requires_grad")],
                target=wanted.label,
            )
        if wanted.needs_grad() is not True:
            return
        target = wanted.edge()
        if target is None or self.gradients_unknown:
            return
        todo: list[Edge] = [edge for out in outputs if (edge := out.edge()) is not None]
        seen: set[Any] = set()
        while todo:
            edge = todo.pop()
            if edge is target:
                return
            if edge in seen:
                continue
            seen.add(edge)
            if isinstance(edge, Node):
                if edge.requires is not True or edge.open:
                    return
                todo.extend(edge.inputs)
        for out in outputs:
            if any(True for _ in out.cuts):
                break
        self.emit("grad-of-unused", site, [Step("made", wanted.site, "made here")], target=wanted.label)

    def absent_grad_used(self, absent: AbsentGrad, node: ast.AST) -> None:
        """None was read from `.grad` and is used as a tensor."""
        site = self.site(node)
        steps = [Step("read", absent.site, "read here"), *self.call_steps(absent.site)]
        if absent.cause == "non-leaf":
            self.emit("grad-of-non-leaf", absent.site, [Step("made", absent.owner.site, "made by an operation here"), Step("needed", site, "used here, while it is None"), *self.call_steps(absent.site)],
                      target=absent.owner.label, used=True)  # fmt: skip
        elif absent.cause in ("never", "cleared", "needs-none"):
            if absent.site.key == site.key:
                steps = steps[1:]
            self.emit("grad-is-none", absent.site, steps, target=absent.owner.label, cause=absent.cause)


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


def leads_to_freed(start: Node) -> bool:
    """Whether a backward from here comes upon a node that was freed."""
    todo: list[Edge] = [start]
    seen: set[Edge] = set()
    while todo:
        edge = todo.pop()
        if not isinstance(edge, Node) or edge in seen:
            continue
        if edge.freed is not None:
            return True
        seen.add(edge)
        todo.extend(edge.inputs)
    return False


def _weak(node: Node) -> bool:
    return isinstance(node.requires, Maybe) and node.requires.weak


__all__ = ["Backward", "BackwardRun", "leaves_of"]
