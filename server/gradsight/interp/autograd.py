"""Recording: what an operator call does to storages and to the graph, told by its operator fact."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.builtins import Builtins
from gradsight.interp.shapes import broadcast, infer_shape
from gradsight.interp.sites import Site
from gradsight.interp.tensors import (
    IGNORANT,
    NO_CUTS,
    Cut,
    Maybe,
    Node,
    RequiresGrad,
    Saved,
    Tensor,
    Write,
    any_requires_grad,
)
from gradsight.interp.values import (
    MISSING,
    AbsentGrad,
    Array,
    Instance,
    Mapping,
    Number,
    Opaque,
    Seq,
    Slice,
    Unknown,
    cuts_of,
    is_constant,
    tensors_in,
)
from gradsight.model.events import Step
from gradsight.ops.fact import Case, Condition, OpFact, Output

INTEGRAL = ("int", "bool")
PLAIN = Output()
PLAIN_CASE = Case(outputs=(PLAIN,), holds_saved="sometimes")


class Autograd(Builtins):
    """The recorder."""

    # -- operators from facts ----------------------------------------------------------------------------------------

    def apply_operator(
        self,
        name: str,
        args: list[Any],
        kwargs: dict[str, Any],
        node: ast.AST,
        settings: dict[str, Any] | None = None,
    ) -> Any:
        """Call the operator `name` (as the fact table spells it)."""
        fact = self.table.find(name)
        if fact is None:
            return self.unknown_result(f"no fact about {name}", args, kwargs, node)
        bound = bind(fact, args, kwargs)
        case, certain = self.select_case(fact, bound, settings)
        return self.record(short_name(name), case, bound, node, certain)

    def select_case(
        self, fact: OpFact, bound: dict[str, Any], settings: dict[str, Any] | None = None
    ) -> tuple[Case, bool]:
        """The first case whose conditions hold; uncertain if a condition before it cannot be told."""
        certain = True
        for case in fact.cases:
            verdict: bool | None = True
            for condition in case.when:
                held = self.condition_holds(condition, bound, fact, settings)
                if held is False:
                    verdict = False
                    break
                if held is None:
                    verdict = None
            if verdict:
                return case, certain
            if verdict is None:
                certain = False
        if fact.cases:
            return fact.cases[-1], False
        return PLAIN_CASE, False

    def condition_holds(
        self, condition: Condition, bound: dict[str, Any], fact: OpFact, settings: dict[str, Any] | None
    ) -> bool | None:
        name = condition.argument
        if settings is not None and name in settings:
            value = settings[name]
        elif name in bound:
            value = bound[name]
        elif name in fact.defaults:
            value = MISSING
            default = fact.defaults[name]
            if condition.kind == "equals":
                return default == condition.value
            if condition.kind == "not":
                return default != condition.value
            if condition.kind == "none":
                return default == "None"
            if condition.kind == "number":
                return default not in ("None",) and not default.startswith(("'", "("))
            return False
        else:
            return condition.kind in ("none", "not")
        kind = condition.kind
        if kind == "equals" or kind == "not":
            if not is_constant(value):
                return None if isinstance(value, (Unknown, Number)) else kind == "not"
            same = repr(value) == condition.value or (
                isinstance(value, (int, float)) and repr(float(value)) == condition.value
            )
            return same if kind == "equals" else not same
        if isinstance(value, Unknown) and not value.hint:
            return None
        if kind == "tensor":
            return isinstance(value, Tensor)
        if kind == "number":
            return isinstance(value, (int, float, complex, Number)) or isinstance(value, Unknown)
        if kind == "none":
            return value is None
        if kind == "sequence":
            return isinstance(value, (Seq, range))
        if kind == "text":
            return isinstance(value, str)
        if kind == "basic":
            return None if isinstance(value, (Unknown, Seq)) else not isinstance(value, Tensor)
        return None

    def record(self, op: str, case: Case, bound: dict[str, Any], node: ast.AST, certain: bool = True) -> Any:
        """Do what the case says with the bound arguments."""
        self.tick += 1
        site = self.site(node)
        operands, ignorant, cuts = self.operands_of(bound, node)
        is_open = ignorant and any(brings_graph(value) for value in bound.values())
        flags: dict[str, RequiresGrad] = {}
        for name, tensor in operands:
            flag = tensor.needs_grad() if tensor.dtype not in INTEGRAL else False
            known = flags.get(name, False)
            flags[name] = any_requires_grad([known, flag]) if known is not False else flag
        wants: RequiresGrad = any_requires_grad([*flags.values(), *([IGNORANT] if ignorant else [])])
        recording = wants if self.grad_mode and not self.inference else False
        targets = [bound[name] for name in case.writes if isinstance(bound.get(name), Tensor)]
        if targets:
            return self.record_write(
                op, case, bound, targets, operands, flags, recording, cuts, site, certain
            )
        if wants is not False and recording is False:
            cuts = cuts | self.mode_cut(op, operands, site)
        results = [
            self.make_result(op, output, bound, operands, recording, cuts, site, wants, certain)
            for output in (case.outputs or (PLAIN,))
        ]
        self.attach_node(op, case, bound, operands, flags, results, recording, site, certain)
        if is_open:
            for result in results:
                if isinstance(result, Tensor) and result.node is not None:
                    result.node.open = True
        if case.sequence:
            return self.sequence_result(op, results[0], bound)
        if len(results) == 1:
            return results[0]
        return Seq("tuple", list(results), True, site)

    def operands_of(
        self, bound: dict[str, Any], node: ast.AST
    ) -> tuple[list[tuple[str, Tensor]], bool, frozenset[Cut]]:
        """The tensor operands by argument, whether an unknown one may be a tensor, and the cuts in the data."""
        operands: list[tuple[str, Tensor]] = []
        ignorant = False
        cuts = NO_CUTS
        for name, value in bound.items():
            kind = type(value)
            if kind is Tensor:
                operands.append((name, value))
                if value.cuts:
                    cuts = cuts | value.cuts
                if value.snapshot:
                    self.note_read(value, node)
            elif kind is Seq:
                self.read_repeated(value, node)
                inner = tensors_in(value)
                operands.extend((name, tensor) for tensor in inner)
                for tensor in inner:
                    if tensor.snapshot:
                        self.note_read(tensor, node)
                cuts = cuts | cuts_of(value)
                if any(isinstance(item, Unknown) and not item.hint for item in value.items):
                    ignorant = True
            elif kind is Unknown:
                tensor = self.assumed_tensor(value)
                if tensor is not None:
                    operands.append((name, tensor))
                elif not value.hint:
                    ignorant = True
                if value.cuts:
                    cuts = cuts | value.cuts
            elif kind is Number or kind is Array:
                if value.cuts:
                    cuts = cuts | value.cuts
            elif kind is Instance or kind is Opaque or kind is Mapping:
                ignorant = ignorant or kind is not Opaque
            elif kind is AbsentGrad:
                self.absent_grad_used(value, node)
        return operands, ignorant, cuts

    def assumed_tensor(self, value: Unknown) -> Tensor | None:
        """The tensor that an unknown argument is taken for, if assumptions about it are allowed."""
        return value.tensor

    def mode_cut(self, op: str, operands: list[tuple[str, Tensor]], site: Site) -> frozenset[Cut]:
        """The cut that grad mode makes: data flows on, nothing is recorded."""
        place = self.mode_site if self.mode_site is not None else site
        found = set()
        for _, tensor in operands:
            if tensor.needs_grad() is not False and tensor.dtype not in INTEGRAL:
                found.add(Cut("inference" if self.inference else "no_grad", op, place, tensor, self.tick))
                if len(found) >= 4:
                    break
        return frozenset(found)

    def make_result(
        self,
        op: str,
        output: Output,
        bound: dict[str, Any],
        operands: list[tuple[str, Tensor]],
        recording: RequiresGrad,
        cuts: frozenset[Cut],
        site: Site,
        wants: RequiresGrad,
        certain: bool,
    ) -> Any:
        source = bound.get(output.alias) if output.alias else None
        if isinstance(source, Unknown):
            source = self.assumed_tensor(source)
        dtype = self.result_dtype(output, operands, bound)
        flows = output.gradient != "none" and dtype not in INTEGRAL
        flag: RequiresGrad = recording if flows else False
        if flag is not False and output.needs:
            flag = any_requires_grad(
                [tensor.needs_grad() for name, tensor in operands if name in output.needs]
            )
        if isinstance(source, Tensor):
            if output.same == "always":
                return source
            shares = output.aliased == "always" or (
                output.aliased == "sometimes" and source.dense and output.same == "never"
            )
            if (
                output.aliased == "sometimes"
                and output.same == "sometimes"
                and op in SAME_WHEN_NOTHING_CHANGES
            ):
                shares = False
            if shares:
                result = self.make_view(source, output, op, site)
                result.requires_grad = flag
                result.dtype = dtype
                result.cuts = cuts
                result.shape = infer_shape(op, output, bound, operands)
                if not flows and wants is not False and source.needs_grad() is not False:
                    result.cuts = cuts | {Cut(cut_kind(op), op, site, source, self.tick)}
                return result
        result = Tensor(site, requires_grad=flag, dtype=dtype, shape=infer_shape(op, output, bound, operands))
        result.dense = all(tensor.dense for _, tensor in operands) or op not in ELEMENTWISE_LAYOUT
        result.cuts = cuts
        if self.inference:
            result.inference_site = self.mode_site
        if not flows and wants is not False and recording is not False and operands:
            sources = [tensor for _, tensor in operands if tensor.needs_grad() is not False]
            result.cuts = cuts | {Cut(cut_kind(op), op, site, tensor, self.tick) for tensor in sources[:4]}
        return result

    def result_dtype(self, output: Output, operands: list[tuple[str, Tensor]], bound: dict[str, Any]) -> str:
        wanted = bound.get("dtype")
        if wanted is not None:
            return dtype_name(wanted)
        if output.dtype in ("bool", "int", "complex"):
            return output.dtype
        kinds = [tensor.dtype for _, tensor in operands]
        if output.dtype == "float":
            floating = [kind for kind in kinds if kind not in INTEGRAL]
            return floating[0] if floating else "float"
        if not kinds:
            return "float"
        if any(kind not in INTEGRAL for kind in kinds):
            return next(kind for kind in kinds if kind not in INTEGRAL)
        numbers = [value for value in bound.values() if isinstance(value, float)]
        if numbers:
            return "float"
        if any(isinstance(value, (Number, Unknown)) for value in bound.values()):
            return "?"
        return "int" if "int" in kinds else "bool"

    def make_view(self, source: Tensor, output: Output, op: str, site: Site) -> Tensor:
        """A window on the memory of `source`."""
        counter = source.counter if output.shares_version else None
        result = Tensor(site, source.storage, counter)
        result.region = source.region
        result.source = source
        result.dense = source.dense and op in DENSE_VIEWS
        result.overlapping = op if output.overlapping else source.overlapping
        if output.gradient == "none":
            result.snapshot = op if op in ("detach", "data") else ""
            result.base = None
        else:
            root = source.root()
            result.base = root
            root_is_view = source.base is not None
            result.seen_rebases = root.rebases
            if source.one_of_many and root_is_view:
                result.one_of_many = source.one_of_many
        if output.one_of_many:
            result.one_of_many = op
        if not self.grad_mode:
            result.view_made_without_grad = True
        return result

    def attach_node(
        self,
        op: str,
        case: Case,
        bound: dict[str, Any],
        operands: list[tuple[str, Tensor]],
        flags: dict[str, RequiresGrad],
        results: list[Any],
        recording: RequiresGrad,
        site: Site,
        certain: bool,
    ) -> None:
        """Give the results their grad_fn and keep what backward needs."""
        if recording is False:
            return
        tensors = [result for result in results if isinstance(result, Tensor)]
        differentiable = [
            result
            for result, output in zip(results, case.outputs or (PLAIN,))
            if isinstance(result, Tensor) and result.requires_grad is not False and output.same != "always"
        ]
        if not differentiable:
            return
        edges = []
        for _, tensor in operands:
            if tensor.dtype not in INTEGRAL:
                edge = tensor.edge()
                if edge is not None:
                    edges.append(edge)
        grad_node = Node(op, site, edges, recording, self.tick)
        grad_node.operands = [tensor for _, tensor in operands]
        grad_node.holds = case.holds_saved if certain else "sometimes"
        grad_node.zero = all(
            output.gradient == "zero" for output in (case.outputs or (PLAIN,)) if output.gradient != "none"
        )
        for result in differentiable:
            result.node = grad_node
        self.keep_saved(grad_node, case, bound, flags, tensors, certain)

    def keep_saved(
        self,
        grad_node: Node,
        case: Case,
        bound: dict[str, Any],
        flags: dict[str, RequiresGrad],
        results: list[Tensor],
        certain: bool,
    ) -> None:
        for save in case.saves:
            sure = certain and save.when == "always"
            if save.needs:
                needed = any_requires_grad([flags.get(name, False) for name in save.needs])
                if needed is False:
                    if not any(isinstance(bound.get(name), Unknown) for name in save.needs):
                        continue
                    sure = False
                elif isinstance(needed, Maybe) and needed.weak:
                    sure = False
            what = save.what
            if what.startswith("result"):
                position = int(what[7:]) if what[7:].isdigit() else 0
                kept = [results[position]] if position < len(results) else []
            else:
                kept = tensors_in(bound.get(what))
                value = bound.get(what)
                if isinstance(value, Unknown) and value.tensor is not None:
                    kept = [value.tensor]
            for tensor in kept:
                if tensor.inference_site is not None and sure and grad_node.requires is True:
                    self.inference_tensor_saved(tensor, grad_node)
                grad_node.saved.append(Saved(tensor, what, sure and self.saves_are_certain))

    saves_are_certain: bool = True

    def inference_tensor_saved(self, tensor: Tensor, node: Node) -> None:
        """A tensor made in inference mode cannot be kept for backward."""
        if tensor.inference_site is not None:
            steps = [Step("saved", node.site, f"{node.op} would have to keep it for backward here")]
            self.emit(
                "backward-without-graph",
                tensor.inference_site,
                steps,
                cut="inference",
                op=node.op,
                loss="",
                source=tensor.label,
            )

    def sequence_result(self, op: str, first: Any, bound: dict[str, Any]) -> Any:
        """A tuple of results of unknown length, all like the first."""
        count = self.count_of_parts(op, bound)
        if not isinstance(first, Tensor):
            return Seq("tuple", [first], False)
        parts = [first]
        for index in range(1, count if count is not None else 3):
            part = Tensor(
                first.site,
                first.storage,
                first.counter,
                first.node,
                first.requires_grad,
                first.dtype,
                first.shape,
            )
            for name in ("base", "seen_rebases", "one_of_many", "overlapping", "cuts", "source", "dense"):
                setattr(part, name, getattr(first, name))
            part.region = ("part", index)
            parts.append(part)
        first.region = ("part", 0)
        return Seq("tuple", list(parts), count is not None)

    def count_of_parts(self, op: str, bound: dict[str, Any]) -> int | None:
        """How many tensors chunk, split and unbind give, where it can be told."""
        values = list(bound.values())
        tensor = values[0] if values else None
        shape = tensor.shape if isinstance(tensor, Tensor) else None
        dim = bound.get("dim", bound.get("axis", 0))
        size = None
        if shape is not None and isinstance(dim, int) and -len(shape) <= dim < len(shape):
            size = shape[dim] if isinstance(shape[dim], int) else None
        if op == "chunk":
            chunks = bound.get("chunks")
            return chunks if isinstance(chunks, int) and chunks <= 64 else None
        if op in ("split", "split_with_sizes", "tensor_split"):
            sizes = bound.get("split_size_or_sections", bound.get("split_size", bound.get("split_sizes")))
            if isinstance(sizes, Seq) and sizes.exact:
                return len(sizes.items)
            if isinstance(sizes, int) and sizes > 0 and size is not None:
                return min(64, -(-size // sizes))
            return None
        if op == "unbind":
            return size if size is not None and size <= 64 else None
        return None

    # -- writes ------------------------------------------------------------------------------------------------------

    def record_write(
        self,
        op: str,
        case: Case,
        bound: dict[str, Any],
        targets: list[Tensor],
        operands: list[tuple[str, Tensor]],
        flags: dict[str, RequiresGrad],
        recording: RequiresGrad,
        cuts: frozenset[Cut],
        site: Site,
        certain: bool,
    ) -> Any:
        """An operator that writes into its arguments."""
        result: Any = targets[0]
        for target in targets:
            others = [tensor for _, tensor in operands if tensor is not target]
            node = self.write_tensor(target, op, site, others, recording, cuts)
            if node is not None:
                node.holds = case.holds_saved if certain else "sometimes"
                self.keep_saved(node, case, {**bound, "result": target}, flags, [target], certain)
        return result

    def write_tensor(
        self,
        target: Tensor,
        op: str,
        site: Site,
        others: list[Tensor],
        recording: RequiresGrad,
        cuts: frozenset[Cut] = NO_CUTS,
        mode: str = "",
        region: Any = None,
        bumps: bool = True,
    ) -> Node | None:
        """Change the content of a tensor; with grad mode on, its history too.  Returns the new node, if any."""
        if target.overlapping and not mode:
            self.overlap_written(target, op, site)
        if recording is not False and not mode:
            self.check_writable(target, op, site, recording)
        if (
            self.grad_mode
            and not mode
            and target.is_leaf
            and target.requires_grad is True
            and recording is False
        ):
            recording = True
        storage = target.storage
        storage.epoch += 1
        if bumps:
            target.counter.version += 1
        kind = mode or ("graph" if recording is not False else "no_grad")
        if not bumps:
            kind = "silent"
        write = Write(site, op, target, kind, target.counter, region if region is not None else target.region)
        write.tick = self.tick
        storage.writes.append(write)
        if cuts:
            target.cuts = target.cuts | cuts
            if target.base is not None:
                target.base.cuts = target.base.cuts | cuts
        if kind == "graph" or (kind == "no_grad" and not self.grad_mode):
            self.after_write(target, op, site, write, others)
        if recording is False or mode:
            if recording is False and not mode and others:
                self.cut_by_write(target, op, site, others)
            return None
        node = Node(op, site, [], recording, self.tick)
        node.operands = [target, *others]
        edge = target.edge() if not (target.is_leaf and target.requires_grad is not False) else None
        if edge is not None and op not in OVERWRITES_ALL:
            node.inputs.append(edge)
        for tensor in others:
            other = tensor.edge()
            if other is not None and tensor.dtype not in INTEGRAL:
                node.inputs.append(other)
        base = target.base
        if base is not None:
            previous = base.edge() if not (base.is_leaf and base.requires_grad is not False) else None
            slices = Node("CopySlices", site, [node], recording, self.tick)
            if previous is not None:
                slices.inputs.append(previous)
            base.node = slices
            base.requires_grad = any_requires_grad([base.requires_grad, recording])
            base.rebases += 1
            target.seen_rebases = base.rebases
        if not (target.is_leaf and target.requires_grad is True):
            target.node = node
            target.requires_grad = any_requires_grad([target.requires_grad, recording])
        return node

    def cut_by_write(self, target: Tensor, op: str, site: Site, others: list[Tensor]) -> None:
        """A write without grad mode takes data from tensors with a graph."""
        found = (
            self.mode_cut(op, [("", tensor) for tensor in others], site) if not self.grad_mode else NO_CUTS
        )
        if found:
            target.cuts = target.cuts | found

    def check_writable(self, target: Tensor, op: str, site: Site, recording: RequiresGrad) -> None:
        """What torch refuses at once."""
        text = self.text_of_target(site)
        base = target.base
        if target.one_of_many and base is not None:
            assumption = recording.reason if isinstance(recording, Maybe) else ""
            if not (isinstance(recording, Maybe) and recording.weak):
                steps = [
                    Step(
                        "made", target.site, f"{target.one_of_many} returns several views of one tensor here"
                    )
                ]
                self.emit(
                    "shared-view-written",
                    site,
                    steps,
                    assumption,
                    op=op,
                    view=target.one_of_many,
                    target=text,
                    reason="many",
                )
            return
        owner = base if base is not None else target
        if owner.is_leaf and owner.requires_grad is True and not owner.rebases:
            steps = [Step("made", owner.site, "the leaf that requires grad is made here")]
            steps += self.call_steps(site)
            self.emit(
                "leaf-written",
                site,
                steps,
                op=op,
                target=text or owner.label,
                leaf=owner.label or text,
                view=base is not None,
            )
        elif owner.is_leaf and isinstance(owner.requires_grad, Maybe) and owner.leaf_made:
            if not owner.requires_grad.weak:
                self.emit(
                    "leaf-written",
                    site,
                    [],
                    owner.requires_grad.reason,
                    op=op,
                    target=text,
                    leaf=text,
                    view=base is not None,
                )

    def overlap_written(self, target: Tensor, op: str, site: Site) -> None:
        steps = [
            Step(
                "made",
                target.site,
                f"{target.overlapping} makes several elements share one memory location here",
            )
        ]
        text = self.text_of_target(site)
        self.emit(
            "shared-view-written", site, steps, op=op, view=target.overlapping, target=text, reason="overlap"
        )

    def call_steps(self, site: Site) -> list[Step]:
        """The calls that led to a place inside a function."""
        return [Step("call", caller, f"called from here") for caller in site.callers()[:3]]

    def text_of_target(self, site: Site) -> str:
        """The source text of what is being written, short enough to speak of."""
        node = site.node
        target: Any = node
        if isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Call):
            target = (
                node.func.value
                if isinstance(node.func, ast.Attribute)
                else (node.args[0] if node.args else node.func)
            )
            if (
                isinstance(node.func, ast.Attribute)
                and isinstance(target, ast.Name)
                and node.args
                and target.id in ("F", "torch", "init", "nn")
            ):
                target = node.args[0]
        try:
            text = ast.unparse(target)
        except Exception:
            return ""
        return text if len(text) <= 40 else text[:37] + "..."

    def after_write(self, target: Tensor, op: str, site: Site, write: Write, others: list[Tensor]) -> None:
        """Hook: a tensor was written by an operator."""


def brings_graph(value: Any) -> bool:
    """Whether an operand is an unknown that may carry a graph of tensors that are known."""
    if isinstance(value, Unknown):
        return value.carries
    return isinstance(value, Seq) and any(isinstance(item, Unknown) and item.carries for item in value.items)


def bind(fact: OpFact, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by parameter name; what does not fit the signature keeps a name of its own."""
    bound: dict[str, Any] = {}
    parameters = fact.parameters
    for index, value in enumerate(args):
        name = parameters[index] if index < len(parameters) else f"*{index}"
        if name.startswith("*") and index < len(parameters):
            rest = args[index:]
            bound[name[1:]] = rest[0] if len(rest) == 1 else Seq("tuple", rest)
            break
        bound[name] = value
    for name, value in kwargs.items():
        bound[
            ALIASES.get(name, name)
            if ALIASES.get(name, name) in parameters and name not in parameters
            else name
        ] = value
    return bound


ALIASES = {
    "x": "input",
    "x1": "input",
    "x2": "other",
    "axis": "dim",
    "keepdims": "keepdim",
    "self": "input",
    "input": "self",
}
OVERWRITES_ALL = {
    "zero_",
    "fill_",
    "copy_",
    "normal_",
    "uniform_",
    "zeros_",
    "ones_",
    "constant_",
    "bernoulli_",
    "exponential_",
}
SAME_WHEN_NOTHING_CHANGES = {
    "to",
    "type",
    "float",
    "double",
    "half",
    "contiguous",
    "cpu",
    "cuda",
    "type_as",
    "bfloat16",
}
DENSE_VIEWS = {
    "view",
    "reshape",
    "flatten",
    "unflatten",
    "unsqueeze",
    "squeeze",
    "detach",
    "data",
    "view_as",
    "ravel",
    "alias",
}
ELEMENTWISE_LAYOUT = {
    "add",
    "sub",
    "mul",
    "div",
    "clone",
    "relu",
    "exp",
    "tanh",
    "sigmoid",
    "dropout",
    "neg",
    "abs",
}
CUT_KINDS = {"detach": "detach", "detach_": "detach", "data": "data"}


def cut_kind(op: str) -> str:
    """How a cut made by an operator is spoken of."""
    return CUT_KINDS.get(op, "op")


def short_name(name: str) -> str:
    """`Tensor.exp_` -> `exp_`, `Tensor.__imul__` -> `mul_`, `nn.functional.relu` -> `relu`."""
    last = name.rpartition(".")[2]
    if last.startswith("__") and last.endswith("__"):
        inner = last[2:-2]
        if inner in DUNDER:
            return DUNDER[inner]
        if inner[0] == "i" and inner[1:] in DUNDER:
            return DUNDER[inner[1:]] + "_"
        if inner[0] == "r" and inner[1:] in DUNDER:
            return DUNDER[inner[1:]]
        if inner == "setitem":
            return "index_put_"
        if inner == "getitem":
            return "index"
    return last


DUNDER = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "pow": "pow",
    "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "neg": "neg", "pos": "positive",
    "invert": "bitwise_not", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "abs": "abs",
    "lshift": "lshift", "rshift": "rshift", "div": "div",
}  # fmt: skip


def dtype_name(value: Any) -> str:
    """The machine's word for a torch dtype."""
    path = getattr(value, "path", "")
    last = path.rpartition(".")[2]
    if last in ("float", "float32"):
        return "float"
    if last in ("double", "float64"):
        return "double"
    if last in ("half", "float16", "bfloat16"):
        return "half"
    if last in ("bool",):
        return "bool"
    if last.startswith(("int", "uint", "long", "short", "qint")):
        return "int"
    if last.startswith(("complex", "cfloat", "cdouble")):
        return "complex"
    return "?"


__all__ = ["Autograd", "Slice", "bind", "broadcast", "dtype_name", "short_name"]
