"""Recording: what an operator call does to storages and to the graph, told by the case that applies."""

from __future__ import annotations

from typing import Any

from gradsight.interp.path_state import PathState
from gradsight.interp.tensors.autograd_floor import AutogradFloor
from gradsight.interp.tensors.changes import is_copy_of_all
from gradsight.interp.tensors.einsum import COPIED, KEPT, factors_kept
from gradsight.interp.tensors.fact_selection import PLAIN, dtype_name, is_no_operand
from gradsight.interp.tensors.layouts import (
    DENSE_VIEWS,
    TWISTS,
    batch_stays_merged,
    keeps_operand,
    lay_out,
    leads,
    merges,
    repeats,
    stays_in_rows,
)
from gradsight.interp.tensors.memory_order import SAME_IF_ALIKE, is_in_order, may_show, of_view
from gradsight.interp.tensors.regions import index_meant, region_of
from gradsight.interp.tensors.sequences import GIVEN, is_kept_exchanged
from gradsight.interp.tensors.shapes import LOSS_RULES, PER_ITEM, RULES, shape_or_error
from gradsight.interp.tensors.structures import FIELDS, count_of_parts, nested, parts_like, with_each_source
from gradsight.interp.tensors.transform_levels import follow
from gradsight.interp.tensors.unknown_operands import brings_graph, is_unseen
from gradsight.model.passed_cuts import cuts_of
from gradsight.model.sites import Site, Syntax
from gradsight.model.tensors import (
    IGNORANT,
    INTEGRAL,
    NO_CUTS,
    Cut,
    Maybe,
    Node,
    Region,
    RequiresGrad,
    Saved,
    Tensor,
    any_requires_grad,
)
from gradsight.model.trace import (
    CutByMode,
    HandedOut,
    InferenceSaved,
    Iterated,
    OperandsSaved,
    OutdatedViewUsed,
    OutRefused,
    Read,
    Recording,
    ResultsMade,
    Used,
)
from gradsight.model.unseen_holders import may_require_grad
from gradsight.model.values import (
    AbsentGrad,
    Array,
    Instance,
    Mapping,
    Number,
    Seq,
    Unknown,
    Value,
    tensors_in,
)
from gradsight.ops.fact import Case, Output, Save
from gradsight.ops.traits import having

OF_WHOLE_NUMBERS = having("whole-arguments") | {"repeat.repeats"}
"""Arguments that take whole numbers and flags alone: no graph goes through them."""
WHOLE: dict[str, set[str]] = {}
"""The same arguments by their operators."""
for _argument in OF_WHOLE_NUMBERS:
    WHOLE.setdefault(_argument.partition(".")[0], set()).add(_argument.partition(".")[2])


class Recorder(AutogradFloor):
    """Makes results, views and graph nodes."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.refused_writes: set[Any] = set()
        """Places of writes that torch refused: nothing comes after them."""

    def record(
        self, op: str, case: Case, bound: dict[str, Value], node: Syntax, certain: bool = True
    ) -> Value:
        """Do what the case says with the bound arguments."""
        if self.path.is_watched:
            self.path.tell(Recording(case, bound, node))
        self.path.tick += 1
        site = self.path.site(node)
        operands, ignorant, cuts = self.operands_of(op, bound, node)
        is_open = ignorant and any(brings_graph(value) for value in bound.values())
        flags: dict[str, RequiresGrad] = {}
        whole = WHOLE.get(op, ())
        for name, tensor in operands:
            is_whole = tensor.dtype in INTEGRAL or name in whole
            flag = False if is_whole else tensor.needs_grad()
            known = flags.get(name, False)
            flags[name] = any_requires_grad([known, flag]) if known is not False else flag
        wants: RequiresGrad = any_requires_grad([*flags.values(), *([IGNORANT] if ignorant else [])])
        recording = wants if self.path.grad_mode and not self.path.inference else False
        if case.refuses and self.path.grad_mode:
            self.check_refused(op, case, flags, site)
        out = bound.get("out")
        if out is not None and recording is not False and isinstance(out, (Tensor, Seq)):
            self.out_refused(op, recording, site)
            recording = False
        if case.writes:
            targets = [
                target
                for name in case.writes
                if isinstance(target := bound.get(name), Tensor) and in_place(name, case)
            ]
            if targets:
                return self.record_write(
                    op, case, bound, targets, operands, flags, recording, cuts, site, certain
                )
        if wants is not False and recording is False:
            cuts = cuts | self.mode_cut(op, operands, site)
        results = [
            self.make_result(op, output, given, operands, recording, cuts, site, wants, certain)
            for output in (case.outputs or (PLAIN,))
            for given in with_each_source(case, output, bound)
        ]
        if self.path.is_watched:
            self.path.tell(ResultsMade(op, results, operands, certain))
        self.attach_node(op, case, bound, operands, flags, results, recording, site, certain)
        if self.path.transforms:
            follow(results, operands)
        if ignorant:
            unproved = [value for value in bound.values() if isinstance(value, Unknown) and value.given]
            for made in (one.node for one in results if isinstance(one, Tensor) and one.node is not None):
                made.open, made.unproved = made.open or is_open, unproved
                made.is_unseen = any(map(is_unseen, bound.values()))
        if case.writes:
            self.write_own_tensors(op, case, bound, site)
        return self.put_together(op, case, bound, results, cuts, site)

    def put_together(
        self,
        op: str,
        case: Case,
        bound: dict[str, Value],
        results: list[Value],
        cuts: frozenset[Cut],
        site: Site,
    ) -> Value:
        """What the call gives: one result, several, or something else."""
        if (
            case.sequence
            or case.returns == "sequence"
            or (case.outputs and all(output.one_of_many for output in case.outputs))
        ):
            is_one_of_each = isinstance(bound.get(case.outputs[0].alias), Seq) if case.outputs else False
            if self.path.is_watched and (is_one_of_each or count_of_parts(op, bound) is None):
                # Of a tensor that fits already torch gives the tensor itself.
                self.path.tell(HandedOut(results))
            if is_one_of_each:
                return Seq("tuple", results, True)
            return parts_like(op, results[0], bound)
        if case.returns == "number":
            return Number(cuts)
        if case.returns == "object" and any(isinstance(value, Seq) for value in bound.values()):
            # One of several that were given may come out, or a view of it: `atleast_1d(x)`.
            return self.nn.unknown_result(f"result of {op}", list(bound.values()), {})
        if case.returns in ("object", "none"):
            return Unknown(f"result of {op}") if case.returns == "object" else None
        if case.structure:
            return nested(case.structure, results)
        if len(results) == 1 and case.returns != "tuple":
            return results[0]
        several = Seq("tuple", list(results), True, site)
        several.fields = FIELDS.get(op) or (("values", "indices") if len(results) == 2 else None)
        return several

    def out_refused(self, op: str, recording: RequiresGrad, site: Site) -> None:
        """`out=` does not support autograd: torch refuses when an argument requires grad."""
        if isinstance(recording, Maybe) and recording.weak:
            return
        premise = recording.reason if isinstance(recording, Maybe) else ""
        self.path.refuse(OutRefused(op, site, premise), premise)

    def check_refused(self, op: str, case: Case, flags: dict[str, RequiresGrad], site: Site) -> None:
        """Hook: an argument that must not require grad."""

    def write_own_tensors(self, op: str, case: Case, bound: dict[str, Value], site: Site) -> None:
        """Running statistics and other tensors of the layer itself that a call changes."""
        for name in case.writes:
            tensor = bound.get(name)
            if isinstance(tensor, Tensor) and not in_place(name, case):
                quiet = name in case.quiet or not case.bumps_version
                self.write_tensor(tensor, op, site, [], False, mode="statistics", bumps=not quiet)

    def record_write(
        self,
        op: str,
        case: Case,
        bound: dict[str, Value],
        targets: list[Tensor],
        operands: list[tuple[str, Tensor]],
        flags: dict[str, RequiresGrad],
        recording: RequiresGrad,
        cuts: frozenset[Cut],
        site: Site,
        certain: bool,
    ) -> Value:
        raise AssertionError("the writer is part of every machine")

    def write_tensor(
        self,
        target: Tensor,
        op: str,
        site: Site,
        others: list[Tensor],
        recording: RequiresGrad,
        cuts: frozenset[Cut] = NO_CUTS,
        mode: str = "",
        region: Region = None,
        bumps: bool = True,
    ) -> Node | None:
        raise AssertionError("the writer is part of every machine")

    def operands_of(
        self, op: str, bound: dict[str, Value], node: Syntax
    ) -> tuple[list[tuple[str, Tensor]], bool, frozenset[Cut]]:
        """The tensor operands by argument, whether an unknown one may be a tensor, and the cuts in the data."""
        self.path.tell(Used(bound, node))
        operands: list[tuple[str, Tensor]] = []
        ignorant = False
        cuts = NO_CUTS
        for name, value in bound.items():
            if isinstance(value, Tensor):
                operands.append((name, value))
                if value.one_of_many and value.counter.version != value.born_version:
                    self.outdated_view_used(value, node)
                if value.cuts:
                    cuts = cuts | value.cuts
                if value.snapshot:
                    self.path.tell(Read(value, node))
            elif isinstance(value, (Seq, Unknown)) and is_no_operand(op, name, value):
                continue
            elif isinstance(value, Seq):
                self.path.tell(Iterated(value, node))
                ignorant = ignorant or (not value.items and not value.exact)
                taken = self.unknown_members(value)
                inner = [*tensors_in(value), *taken.values()]
                operands.extend((name, tensor) for tensor in inner)
                for tensor in inner:
                    if tensor.one_of_many and tensor.counter.version != tensor.born_version:
                        self.outdated_view_used(tensor, node)
                    if tensor.snapshot:
                        self.path.tell(Read(tensor, node))
                cuts = cuts | cuts_of(value)
                if not (value.exact or value.alike) or any(
                    isinstance(item, Unknown) and not item.hint and id(item) not in taken
                    for item in value.items
                ):
                    ignorant = True
            elif isinstance(value, Unknown):
                assumed = self.entry.assumed_tensor(value)
                if assumed is not None:
                    operands.append((name, assumed))
                elif not value.hint and not value.is_setting:
                    ignorant = True
                if value.cuts:
                    cuts = cuts | value.cuts
            elif isinstance(value, (Number, Array)):
                if value.cuts:
                    cuts = cuts | value.cuts
            elif isinstance(value, (Instance, Mapping)):
                ignorant = True
            elif isinstance(value, AbsentGrad):
                self.absent_grad_used(value, node)
        return operands, ignorant, cuts

    def unknown_members(self, listed: Seq) -> dict[int, Tensor]:
        """The tensors that unknown members of a list are taken for: `stack([model(x) for x in views])`."""
        found: dict[int, Tensor] = {}
        for item in listed.items:
            if isinstance(item, Unknown) and id(item) not in found:
                tensor = self.entry.assumed_tensor(item)
                if tensor is not None:
                    found[id(item)] = tensor
        return found

    def outdated_view_used(self, view: Tensor, node: Syntax) -> None:
        """One of several views is used after a write to its base (or to another view of it): torch refuses."""
        base = view.base
        if base is None or base.requires_grad is not True or not self.path.grad_mode or self.path.inference:
            return
        write = next((write for write in view.storage.writes if write.version > view.born_version), None)
        if write is not None and write.site.key not in self.refused_writes:
            self.path.refuse(OutdatedViewUsed(view, write, self.path.site(node)))

    def mode_cut(self, op: str, operands: list[tuple[str, Tensor]], site: Site) -> frozenset[Cut]:
        """The cut that grad mode makes: data flows on, nothing is recorded."""
        self.path.tell(CutByMode(op, site))
        place = self.path.mode_site if self.path.mode_site is not None else site
        found = set()
        for _, tensor in operands:
            if tensor.needs_grad() is not False and tensor.dtype not in INTEGRAL:
                kind = "inference" if self.path.inference else "no_grad"
                found.add(Cut(kind, op, place, tensor, self.path.tick, site))
                if len(found) >= 4:
                    break
        return frozenset(found)

    def make_result(
        self,
        op: str,
        output: Output,
        bound: dict[str, Value],
        operands: list[tuple[str, Tensor]],
        recording: RequiresGrad,
        cuts: frozenset[Cut],
        site: Site,
        wants: RequiresGrad,
        certain: bool,
    ) -> Value:
        source = bound.get(output.alias) if output.alias else None
        if isinstance(source, Unknown):
            source = self.entry.assumed_tensor(source)
        dtype = self.result_dtype(output, operands, bound)
        flows = output.gradient != "none" and dtype not in INTEGRAL
        flag: RequiresGrad = recording if flows else False
        if flag is not False and output.needs:
            flag = any_requires_grad(
                [tensor.needs_grad() for name, tensor in operands if name in output.needs]
            )
        may_share = False
        if isinstance(source, Tensor):
            if output.same == "always":
                return source
            sometimes = output.aliased == "sometimes"
            shape = shape_or_error(self.path, op, output, bound, operands) if sometimes else None
            is_alike = shape is not None and shape == source.shape
            if is_alike and output.same == "sometimes" and source.dense:
                return source
            shares = output.aliased == "always" or (
                sometimes
                and (source.dense or (is_alike and op in SAME_IF_ALIKE and None not in (shape or ())))
            )
            if shares:
                result = self.make_view(source, output, op, site)
                result.requires_grad = flag
                result.dtype = dtype
                result.cuts = cuts
                result.shape = shape_or_error(self.path, op, output, bound, operands)
                result.dense = result.dense or (source.dense and leads(op, bound))
                result.rows_dense = result.dense or stays_in_rows(op, bound, source)
                result.batch_merges = result.dense or batch_stays_merged(op, bound, source)
                result.layout = of_view(op, bound, source)
                result.dense = result.dense or is_in_order(result.layout)
                if source.region is None and (index := index_meant(op, bound)) is not None:
                    result.region = region_of(index, source.shape)
                if output.overlapping and repeats(source.shape, result.shape):
                    result.overlapping = op
                if not flows and wants is not False and source.needs_grad() is not False:
                    result.cuts = cuts | {Cut(cut_kind(op), op, site, source, self.path.tick)}
                return result
            elif sometimes and (
                None in (source.shape, source.layout, source.base) or None in (source.shape or ())
            ):
                may_share = True
        result = Tensor(
            site,
            requires_grad=flag,
            dtype=dtype,
            shape=shape_or_error(self.path, op, output, bound, operands),
        )
        if may_share:
            # With a dimension of size 1, or where an operator has laid its result out anew, the same memory, else a copy:
            # nothing is said about a write to it.
            result.counter.kept = result.counter.version
        if bound.get("reduction") == "none" and RULES.get(op) in LOSS_RULES:
            result.attributes = {PER_ITEM: True}
        lay_out(result, op, output.shape, bound, operands)
        if result.dense and op in RESHAPES and isinstance(source, Tensor) and not source.dense:
            result.dense = not may_show(source, result.shape)
        result.cuts = cuts
        if op == "clone" and len(operands) == 1 and is_copy_of_all(operands[0][1], operands[0][1]):
            result.storage.content = operands[0][1].storage.content
        result.storage.settle(op, [tensor.storage for _, tensor in operands])
        if self.path.inference:
            result.inference_site = self.path.mode_site
        if not flows and wants is not False and recording is not False and operands:
            sources = [tensor for _, tensor in operands if tensor.needs_grad() is not False]
            result.cuts = cuts | {
                Cut(cut_kind(op), op, site, tensor, self.path.tick) for tensor in sources[:4]
            }
        return result

    def result_dtype(
        self, output: Output, operands: list[tuple[str, Tensor]], bound: dict[str, Value]
    ) -> str:
        wanted = bound.get("dtype")
        if wanted is not None:
            return dtype_name(wanted)
        if output.dtype in ("bool", "int", "complex"):
            return output.dtype
        kinds = [tensor.dtype for _, tensor in operands]
        if self.path.autocast and "float" in kinds:
            # Which operators go to the lower precision is torch's choice: a later `.float()` may copy.
            return "autocast"
        for kind in kinds:
            if kind not in INTEGRAL:
                return kind
        if output.dtype == "float" or not kinds:
            return "float"
        numbers = [value for value in bound.values() if isinstance(value, float)]
        if numbers:
            return "float"
        if any(isinstance(value, (Number, Unknown)) for value in bound.values()):
            return "?"
        return "int" if "int" in kinds else "bool"

    def make_view(self, source: Tensor, output: Output, op: str, site: Site) -> Tensor:
        """A window on the memory of `source`."""
        counter = source.counter if output.shares_version else None
        if source.inference_site is not None and output.gradient == "none":
            # Outside inference mode `detach()` and `.data` give the memory a counter, and with it leave to write.
            counter = source.counter if self.path.inference else None
        result = Tensor(site, source.storage, counter)
        result.region = source.region
        result.source = source
        result.follows = source.follows
        result.inference_site = source.inference_site
        result.twist = source.twist + (op if op in TWISTS else "")
        result.dense = source.dense and op in DENSE_VIEWS
        result.overlapping = source.overlapping
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
        if not self.path.grad_mode:
            result.view_made_without_grad = True
        if source.snapshot == "grad":
            # A view, or a detached alias, of a gradient follows it as the gradient's own name does.
            result.snapshot, result.grad_of = "grad", source.grad_of
        return result

    def attach_node(
        self,
        op: str,
        case: Case,
        bound: dict[str, Value],
        operands: list[tuple[str, Tensor]],
        flags: dict[str, RequiresGrad],
        results: list[Value],
        recording: RequiresGrad,
        site: Site,
        certain: bool,
    ) -> None:
        """Give the results their grad_fn and keep what backward needs."""
        if recording is False:
            return
        given = [tensor for _, tensor in operands]
        tensors = [result for result in results if isinstance(result, Tensor)]
        differentiable = [
            result for result in tensors if result.requires_grad is not False and result not in given
        ]
        if not differentiable:
            return
        edges = []
        for tensor in given:
            if tensor.dtype not in INTEGRAL:
                edge = tensor.edge()
                if edge is not None:
                    edges.append(edge)
        grad_node = Node(op, site, edges, recording, self.path.tick)
        grad_node.operands = given
        grad_node.holds = holds_of(case, flags, certain, op == "einsum" and len(operands) > 1)
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
        bound: dict[str, Value],
        flags: dict[str, RequiresGrad],
        results: list[Tensor],
        certain: bool,
    ) -> None:
        before, copied = len(grad_node.saved), set[str]()
        for save in case.saves:
            sure = certain and save.when == "always"
            if save.needs and save.needs[0].endswith(":others"):
                self.keep_factors(grad_node, save, bound, sure)
                continue
            if save.needs:
                needed = any_requires_grad([flags.get(name.partition(":")[0], False) for name in save.needs])
                if needed is False:
                    sure = False
                    if not any(may_require_grad(bound.get(name.partition(":")[0])) for name in save.needs):
                        continue
                elif (isinstance(needed, Maybe) and needed.weak) or ":" in (names := " ".join(save.needs)):
                    sure = sure and needed is True and ":itself" not in names
            for tensor in self.tensors_saved(save.what, bound, results):
                kept_itself = keeps_operand(grad_node.op, tensor, grad_node.operands, save.contiguous)
                if self.path.autocast and not save.what.startswith("result"):
                    kept_itself = False
                if self.exchanges_batch and save.what in GIVEN:
                    kept_itself = is_kept_exchanged(tensor)
                if not kept_itself:
                    copied.add(save.what)
                if tensor.inference_site is not None and sure and grad_node.requires is True:
                    self.inference_tensor_saved(tensor, grad_node)
                grad_node.saved.append(
                    Saved(tensor, save.what, sure and kept_itself and self.saves_are_certain, save.noticed)
                )
        if self.path.is_watched:
            self.path.tell(OperandsSaved(grad_node, grad_node.saved[before:], frozenset(copied)))

    def keep_factors(self, grad_node: Node, save: Save, bound: dict[str, Value], sure: bool) -> None:
        """Each of several factors is kept if another one requires grad."""
        factors = tensors_in(bound.get(save.what))
        equation = next((value for value in bound.values() if isinstance(value, str)), "")
        kept = factors_kept(equation, [factor.shape for factor in factors])
        for position, tensor in enumerate(factors):
            others = [other.needs_grad() for other in factors[:position] + factors[position + 1 :]]
            needed = any_requires_grad(others) if len(factors) > 1 else True
            told = kept[position]
            if needed is False or told.how == COPIED:
                continue
            itself = told.how == KEPT and (tensor.dense or merges(tensor, told))
            if tensor.inference_site is not None and sure and itself and grad_node.requires is True:
                self.inference_tensor_saved(tensor, grad_node)
            is_certain = (
                sure and itself and needed is True and not self.path.autocast and self.saves_are_certain
            )
            grad_node.saved.append(Saved(tensor, save.what, is_certain))

    def tensors_saved(self, what: str, bound: dict[str, Value], results: list[Tensor]) -> list[Tensor]:
        if what.startswith("result"):
            position = int(what[7:]) if what[7:].isdigit() else 0
            return [results[position]] if position < len(results) else []
        value = bound.get(what)
        if isinstance(value, Unknown):
            return [value.tensor] if value.tensor is not None else []
        return tensors_in(value)

    saves_are_certain, exchanges_batch = True, False

    def inference_tensor_saved(self, tensor: Tensor, node: Node) -> None:
        """A tensor made in inference mode cannot be kept for backward."""
        if tensor.inference_site is not None:
            self.path.refuse(InferenceSaved(tensor, node))


def in_place(name: str, case: Case) -> bool:
    """Whether a written argument is what the operator works on, not a side effect such as running statistics."""
    if name.startswith("self.") or name in case.quiet:
        return False
    return case.returns == "none" or any(
        output.alias == name and output.same == "always" for output in case.outputs
    )


def holds_of(case: Case, flags: dict[str, RequiresGrad], certain: bool, is_product: bool = False) -> str:
    """Whether the node keeps anything, so that a second backward is refused; of a product, each factor for the other."""
    if not certain:
        return "sometimes"
    if case.holds_needs and case.holds_saved != "never":
        needed = any_requires_grad([flags.get(name, False) for name in case.holds_needs])
        if needed is False:
            return "never"
        if isinstance(needed, Maybe) and needed.weak:
            return "sometimes"
    return "always" if is_product else case.holds_saved


RESHAPES = SAME_IF_ALIKE | {"flatten", "unflatten", "ravel"}
CUT_KINDS = {"detach": "detach", "detach_": "detach", "data": "data"}


def cut_kind(op: str) -> str:
    """How a cut made by an operator is spoken of."""
    return CUT_KINDS.get(op, "op")
