"""What flows where: parameters that starve behind a cut, terms that do not train, and aliases taken for copies."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.library import Library
from gradsight.interp.sites import Site
from gradsight.interp.tensors import Cut, Edge, Node, Tensor, leaves_of
from gradsight.interp.values import AbsentGrad, Mapping, Number, Opaque, Seq, Unknown, cuts_of, tensors_in
from gradsight.model.events import Step

LINEAR = {"add", "sub", "mul", "div", "neg", "mean", "sum", "stack", "cat", "add_", "sub_", "mul_", "div_", "index", "squeeze", "to"}  # fmt: skip
TERM_KINDS = {"number", "numpy", "detach", "data", "copy", "grad", "no_grad", "inference"}


class Flow(Library):
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
        if last > since:
            return
        self.explain_absence(parameter, runs, site)

    def explain_absence(self, parameter: Tensor, runs: list[Any], site: Site) -> None:
        for run in reversed(runs):
            if parameter in run.zero_leaves:
                self.zero_gradient(parameter, run)
                return
            causes = [cut for cut in run.cuts if parameter in self.leaves_behind(cut)]
            if causes:
                self.report_cut(max(causes, key=lambda cut: cut.tick), parameter, run)
                return

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
        self.emit("path-cut", cut.site, steps, cut=cut.kind, op=cut.op, source=cut.source.label, hidden=hidden is not None,
                  parameter=parameter.label)  # fmt: skip

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
                self.emit("path-cut", current.site, [Step("needed", run.site, "this backward brings back zeros only"), *self.call_steps(current.site)],
                          cut="zero", op=current.op, source=parameter.label, hidden=False, parameter=parameter.label)  # fmt: skip
                return
            todo.extend(current.inputs)

    def absent_grad_kept(self, absent: AbsentGrad) -> None:
        """A gradient that is None is printed or stored: if a cut is the reason, say so."""
        if absent.cause == "non-leaf":
            self.emit("grad-of-non-leaf", absent.site, [Step("made", absent.owner.site, "made by an operation here"), *self.call_steps(absent.site)], target=absent.owner.label, used=False)  # fmt: skip
        elif absent.cause == "never" and self.backwards:
            self.explain_absence(absent.owner, self.backwards, absent.site)

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
        if not isinstance(result, Tensor) or result.node is None or result.shape not in ((), None):
            return
        for with_graph, without in ((left, right), (right, left)):
            if not isinstance(with_graph, Tensor) or with_graph.needs_grad() is not True:
                continue
            if isinstance(without, Tensor):
                if without.needs_grad() is not False or without.shape != ():
                    continue
            elif not isinstance(without, Number):
                continue
            for cut in cuts_of(without):
                if cut.kind in TERM_KINDS:
                    self.terms.append((result.node, cut, self.site(node), with_graph))

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
            if not trainable or not self.trains(trainable, run):
                continue
            if cut.source is partner or cut.source.node is not None and cut.source.node is partner.node:
                continue
            if cut.kind != "grad" and partner.node is not None and cut.source.node is not None:
                if self.reaches(partner.node, cut.source.node):
                    continue
            kind = "penalty-without-graph" if cut.kind == "grad" else "term-cut"
            steps = [
                Step("read", site, "added to the loss here"),
                Step("needed", run.site, "this backward does not see the term"),
                *self.call_steps(cut.site),
            ]
            self.emit(kind, cut.site, steps, cut=cut.kind, op=cut.op, source=cut.source.label)

    def trains(self, leaves: set[Tensor], run: Any) -> bool:
        """Whether these leaves are meant to learn from this backward: an optimizer has them, or it reaches one of them."""
        held = {tensor for optimizer in self.optimizers for tensor in self.parameters_of(optimizer)}
        return bool(leaves & held) or bool(leaves & run.leaves)

    def reaches(self, start: Node, wanted: Node) -> bool:
        todo: list[Edge] = [start]
        seen: set[Node] = set()
        while todo:
            current = todo.pop()
            if current is wanted:
                return True
            if isinstance(current, Node) and current not in seen and current.op in LINEAR:
                seen.add(current)
                todo.extend(current.inputs)
        return False

    # -- aliases taken for copies ------------------------------------------------------------------------------------

    def snapshot_read(self, tensor: Tensor, writes: list[Any], kind: str, site: Site) -> None:
        if not writes or not tensor.label and kind != "state_dict":
            return
        write = writes[0]
        if kind in ("detach", "data"):
            source = tensor.source
            if source is None or not (source.is_parameter or source.leaf_made or source.node is not None):
                return
            if write.mode == "silent" and write.op == "data assignment":
                return
        by_hand = write.mode in ("graph", "no_grad", "silent") and write.op not in (
            "load_state_dict",
            "optimizer step",
        )
        place = write.site if by_hand else tensor.site
        other = (
            Step("made", tensor.site, f"{KIND_WORDS[kind]} shares memory with its source")
            if by_hand
            else Step("written", write.site, f"{write.op} writes the source here")
        )
        steps = [other, Step("read", site, "read here, with the new value"), *self.call_steps(place)]
        self.emit("alias-read-after-write", place, steps, how=kind, write=write.op, target=tensor.label, alias=tensor.label,
                  written=self.text_of_target(write.site))  # fmt: skip

    def operands_of(self, bound: dict[str, Any], node: ast.AST) -> Any:
        for value in bound.values():
            if type(value) is Tensor and value.storage.writes and value.node is not None:
                self.check_written_through_alias(value, node)
        return super().operands_of(bound, node)

    def check_written_through_alias(self, tensor: Tensor, node: ast.AST) -> None:
        """A tensor of the graph is read after a write through its `detach()` or `.data` alias."""
        if tensor.storage.epoch == tensor.born_epoch or not self.grad_mode or tensor.snapshot:
            return
        for write in tensor.storage.writes:
            if write.epoch <= tensor.born_epoch or write.mode == "accumulate" or write.site.node is node:
                continue
            alias = named_alias(write.writer, tensor)
            if alias is not None:
                steps = [
                    Step(
                        "made",
                        alias.site,
                        f"{alias.snapshot} shares memory with {tensor.label or 'its source'}",
                    ),
                    Step("read", self.site(node), "the source is read here, with the new value"),
                    *self.call_steps(write.site),
                ]
                self.emit("alias-read-after-write", write.site, steps, how="source", write=write.op, target=tensor.label,
                          alias=alias.label, written=self.text_of_target(write.site))  # fmt: skip
                return

    def do_assign(self, node: ast.Assign) -> Any:
        status = super().do_assign(node)
        if isinstance(node.value, ast.Name) or len(node.targets) > 1:
            self.note_names(node)
        return status

    def call_function(self, function: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        start = self.tick
        result = super().call_function(function, args, kwargs, node)
        if isinstance(result, Tensor) and result.storage.writes and result.storage.writes[-1].tick > start:
            if isinstance(node, ast.Call) and not function.name.endswith("_"):
                self.check_mutated_argument(node, result, start)
        return result

    def note_names(self, node: ast.Assign) -> None:
        """`a = b` and `a = b = value`: two names for one tensor."""
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if isinstance(node.value, ast.Name):
            names.append(node.value.id)
        if len(names) < 2:
            return
        tensor = self.frame.namespace.get(names[0])
        if isinstance(tensor, Tensor):
            self.same_tensor.append((self.frame, tensor, names, self.site(node)))

    same_tensor: list[Any]

    def after_write(self, target: Tensor, op: str, site: Site, write: Any, others: list[Tensor]) -> None:
        super().after_write(target, op, site, write, others)
        if self.same_tensor and site.frame is self.frame:
            name = written_name(site.node)
            if name:
                self.other_names_changed(name, write)

    def other_names_changed(self, name: str, write: Any) -> None:
        """An in-place write under one name changes what the other names mean."""
        frame = self.frame
        tensor = frame.namespace.get(name)
        if not isinstance(tensor, Tensor):
            return
        for owner, same, names, site in self.same_tensor:
            if owner is frame and same is tensor and name in names:
                for other in names:
                    if other != name and frame.namespace.get(other) is tensor:
                        if frame.stale is None:
                            frame.stale = {}
                        frame.stale[other] = (write, site, name)

    def check_mutated_argument(self, call: ast.Call, result: Tensor, start: int) -> None:
        """`y = f(x)` where f wrote into x and returned it: both names now mean the changed tensor."""
        frame = self.frame
        for argument in call.args:
            given = frame.namespace.get(argument.id) if isinstance(argument, ast.Name) else None
            if not isinstance(given, Tensor) or given.storage is not result.storage:
                continue
            for write in result.storage.writes:
                if write.tick > start and write.site.frame.depth > frame.depth and write.mode in ("graph", "no_grad"):
                    if frame.stale is None:
                        frame.stale = {}
                    frame.stale[argument.id] = (write, self.site(call), "the result")
                    break

    def stale_name_read(self, name: str, node: ast.AST) -> None:
        frame = self.frame
        if frame.stale is None:
            return
        write, call, target = frame.stale.pop(name)
        value = frame.namespace.get(name)
        if not isinstance(value, Tensor) or value.storage is not write.writer.storage:
            return
        inside = write.site.frame is not frame
        told = f"the result is kept as {target} here" if inside else f"{target} and {name} become one tensor here"
        steps = [
            Step("call" if inside else "made", call, told),
            Step("read", self.site(node), f"{name} is read here, changed"),
        ]
        self.emit("alias-read-after-write", write.site, steps, how="argument" if inside else "name", write=write.op, target=name, alias=target,
                  written=self.text_of_target(write.site))  # fmt: skip

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
            self.emit("path-cut", site, [Step("made", value.site, "the value with a graph is made here")], cut="parameter",
                      op="nn.Parameter", source=value.label, hidden=False, parameter="")  # fmt: skip


KIND_WORDS = {
    "detach": "detach()",
    "data": ".data",
    "state_dict": "state_dict()",
    "slice": "this slice",
    "grad": ".grad",
}


def written_name(node: ast.AST) -> str:
    """The name that an in-place statement writes: `a` in `a += 1`, `a[0] = 1`, `a.mul_(2)`."""
    target: Any = node
    if isinstance(node, ast.AugAssign):
        target = node.target
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        target = node.func.value
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def named_alias(writer: Tensor | None, source: Tensor) -> Tensor | None:
    """The named `detach`/`.data` alias of `source` through which a write went, if it did."""
    steps = 0
    alias: Tensor | None = None
    while writer is not None and steps < 20:
        if writer.snapshot in ("detach", "data"):
            alias = writer
        if writer is source:
            return alias if alias is not None and alias.label else None
        writer = writer.source
        steps += 1
    return None


__all__ = ["Flow", "Mapping", "Seq", "Unknown", "tensors_in"]
