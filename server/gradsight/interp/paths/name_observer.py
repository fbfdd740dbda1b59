"""A machine that notes what it sees of every tensor name, for cards; its events are not wanted.

*Sighting*: a name stood for a tensor at one moment of one path.  What can change later is noted at that moment; who keeps
the tensor for backward is gathered until the path ends.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.path_state import PathState, Program
from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.distant_calls import DistantCalls
from gradsight.interp.paths.evidence import (
    EvidenceAutograd,
    EvidenceModules,
    EvidenceObjects,
)
from gradsight.interp.paths.grad_fns import WRITTEN_INSIDE
from gradsight.interp.paths.library_evidence import EvidenceLibraries
from gradsight.interp.python.loops import Loops
from gradsight.interp.python.statements import LoopRun
from gradsight.interp.syntax import names_read, remembered
from gradsight.interp.tensors.fact_selection import CaseSelection
from gradsight.model.sites import Frame, Syntax, Unit
from gradsight.model.tensors import IGNORANT, Counter, Maybe, Node, Storage, Tensor, Write
from gradsight.model.values import (
    Function,
    Native,
    Number,
    PythonModule,
    Seq,
    Unknown,
    Value,
    is_constant,
    tensors_in,
)
from gradsight.ops.fact import Case, OpFact

MOST_PER_NAME = 24
"""So many moments tell whether a name always stands for the same kind of tensor."""

COPIES_STRIDED = frozenset("Linear bilinear einsum linear matmul".split())
"""Products that bring a tensor with gaps or turned dimensions into order first, and keep that copy."""


class CallSighting:
    """One call of an operator at one moment, and the case of its fact that it met; None where that is not certain."""

    __slots__ = ("case", "fact", "is_cast", "numbers", "unit")

    def __init__(
        self, unit: Unit, fact: OpFact, case: int | None, numbers: frozenset[str], is_cast: bool
    ) -> None:
        self.unit = unit
        self.fact = fact
        self.case = case
        self.numbers = numbers
        self.is_cast = is_cast


class Sighting:
    """One name at one moment."""

    __slots__ = ("escaped", "frame", "is_assigned", "loops", "node", "records", "requires", "syntax", "tensor", "unit", "version",
                 "writes")  # fmt: skip

    def __init__(self, syntax: ast.AST, frame: Frame, tensor: Tensor, is_assigned: bool) -> None:
        self.syntax = syntax
        self.unit: Unit = frame.unit
        self.frame = frame
        self.loops = frame.loops
        self.tensor = tensor
        self.is_assigned = is_assigned
        self.requires: bool | Maybe = tensor.needs_grad()
        self.node: Node | None = tensor.node
        self.version = tensor.counter.version
        self.writes = len(tensor.storage.writes)
        self.escaped = ""
        self.records = True


class NameObserver:
    """Executes an entry like any machine, and remembers sightings by syntax node."""

    def __init__(self, path: PathState) -> None:
        self.path = path
        self.sightings: dict[Any, list[Sighting]] = {}
        self.calls: dict[Any, list[CallSighting]] = {}
        self.selected: tuple[OpFact, Case, int | None] | None = None
        """The fact and the case of it that were chosen last."""
        self.keepers: dict[Storage, list[Node]] = {}
        self.makers: dict[Tensor, str] = {}
        self.handed_out: dict[Storage, str] = {}
        self.unfinished: set[LoopRun] = set()
        """Loops that are over and of which not every round was executed."""
        self.finished: set[LoopRun] = set()
        """Loops of which every round was executed; the loop of a generator that was left is in neither."""
        self.counted: set[Counter] = set()
        """Version counters that began at 0 when their tensor was made."""
        self.functions: set[Node] = set()
        """What `apply` of a custom Function recorded."""
        self.blind = 0
        """Inside code whose tensors are not what they seem: a Function's own forward, a transformed function."""
        self.recomputed = 0
        """Inside a checkpoint: what operators would keep there is thrown away, and made again by backward."""

    def see(self, syntax: ast.AST, value: Value, is_assigned: bool = False) -> None:
        """Note that a name stands for a tensor now."""
        tensor = value.tensor if type(value) is Unknown else value
        if type(tensor) is not Tensor or self.blind:
            return
        known = self.sightings.setdefault(syntax, [])
        sighting = Sighting(syntax, self.path.frame, tensor, is_assigned)
        sighting.escaped = self.handed_out.get(tensor.storage, "")
        sighting.records = self.path.grad_mode and not self.path.inference
        if len(known) < MOST_PER_NAME:
            known.append(sighting)
        else:
            known[-1] = sighting

    def see_call(self, syntax: Any, case: Case, bound: dict[str, Any]) -> None:
        """Note which case of which fact a call met."""
        selected, self.selected = self.selected, None
        if selected is None or selected[1] is not case or self.path.frame.unit.library:
            return
        known = self.calls.setdefault(syntax, [])
        if len(known) < MOST_PER_NAME:
            numbers = frozenset(
                name for name, value in bound.items() if is_constant(value) or isinstance(value, Number)
            )
            known.append(
                CallSighting(self.path.frame.unit, selected[0], selected[2], numbers, self.path.autocast)
            )

    # -- what happens to tensors -------------------------------------------------------------------------------------

    def begins_unwritten(self, op: str, result: Tensor, operands: list[tuple[str, Tensor]]) -> bool:
        """Whether the operator made memory of its own and did not write to it twice."""
        if result.counter.version or any(
            tensor.storage is result.storage or tensor.inference_site is not None for _, tensor in operands
        ):
            return False
        if op in ("Linear", "linear", "matmul"):
            # Vectors are taken for matrices with one row, which is squeezed away in place.
            return all(
                tensor.shape is not None and len(tensor.shape) > 1
                for name, tensor in operands
                if not name.endswith("bias")
            )
        return op not in WRITTEN_INSIDE

    def is_counted(self, write: Write, sighting: Sighting) -> bool:
        """Whether the write is one write in torch too: no optimizer's, and not in rounds that were left out."""
        return write.mode != "optimizer" and all(
            not (run.skips or run in self.unfinished) or (run, number) in sighting.loops
            for run, number in write.site.loops
        )

    def is_written_in_other_rounds(self, tensor: Tensor, sighting: Sighting) -> bool:
        """Whether it outlives a round of a loop that writes it, and rounds of that loop were left out."""
        lasting = {
            run
            for run, number in sighting.loops
            if run not in self.finished and (run, number) not in tensor.site.loops
        }
        return bool(lasting) and any(
            run in lasting for write in tensor.storage.writes for run, _ in write.site.loops
        )

    def is_seen_too_early(self, sightings: list[Sighting]) -> bool:
        """Whether a name that rounds of a loop hand on to the next was seen in one of them, and others were left out."""
        rounds: dict[LoopRun, set[int]] = {}
        for sighting in sightings:
            for run, number in sighting.loops:
                rounds.setdefault(run, set()).add(number)
        syntax = sightings[0].syntax
        return isinstance(syntax, ast.Name) and any(
            len(numbers) == 1 and run not in self.finished and syntax.id in handed_on(run.node)
            for run, numbers in rounds.items()
        )


class ObservedLoops(Loops):
    """What NameObserver adds to loops."""

    observer: NameObserver

    def loop_ended(self, run: LoopRun) -> None:
        super().loop_ended(run)
        if run.length is None or run.number < run.length or run.skips:
            self.observer.unfinished.add(run)
        else:
            self.observer.finished.add(run)


class ObservedLanguage(DistantCalls):
    """What NameObserver adds to the language."""

    observer: NameObserver

    def load_name(self, node: ast.Name) -> Value:
        value = super().load_name(node)
        self.observer.see(node, value)
        return value

    def attribute(self, node: ast.Attribute) -> Value:
        value = super().attribute(node)
        self.observer.see(node, value)
        return value

    def assign(self, target: ast.expr, value: Value) -> None:
        super().assign(target, value)
        if type(target) is ast.Name or type(target) is ast.Attribute:
            self.observer.see(target, value, True)

    def bind_arguments(
        self, function: Function, args: list[Value], kwargs: dict[str, Value]
    ) -> dict[str, Value]:
        names = super().bind_arguments(function, args, kwargs)
        signature = function.node.args
        caller = self.path.frame
        inside = Frame(function.name, function.unit, names, None, caller.depth + 1, caller.numbering)
        inside.loops, inside.call_site = caller.loops, None
        self.path.frame = inside
        try:
            for parameter in (*signature.posonlyargs, *signature.args, *signature.kwonlyargs):
                self.observer.see(parameter, names.get(parameter.arg))
        finally:
            self.path.frame = caller
        return names


class ObservedObjects(EvidenceObjects):
    """What NameObserver adds to objects."""

    observer: NameObserver

    def set_attribute(
        self, owner: Value, name: str, value: Value, node: ast.AST, augmented: bool = False
    ) -> None:
        super().set_attribute(owner, name, value, node, augmented)
        if augmented:
            self.observer.see(node, value, True)

    def get_item(self, owner: Value, index: Value, node: ast.AST) -> Value:
        """One item of a list stands for another only where all of them are alike."""
        value = super().get_item(owner, index, node)
        if type(owner) is not Seq or type(value) is not Tensor or (owner.exact and is_constant(index)):
            return value
        tensors = [item for item in owner.items if type(item) is Tensor]
        alike = {(tensor.node is None, tensor.needs_grad() is True) for tensor in tensors}
        if owner.exact and len(tensors) == len(owner.items) and len(alike) == 1:
            return value
        some = Tensor(value.site, requires_grad=IGNORANT, dtype=value.dtype)
        some.node = Node("item", self.path.site(node), [], IGNORANT, self.path.tick)
        return some


class ObservedFacts(CaseSelection):
    """What NameObserver adds to the choice of facts."""

    observer: NameObserver

    def select_case(
        self, fact: OpFact, bound: dict[str, Value], settings: dict[str, Value] | None = None
    ) -> tuple[Case, bool]:
        case, certain = super().select_case(fact, bound, settings)
        conditions = [each.when for each in fact.cases]
        number = conditions.index(case.when) if certain and case.when in conditions else None
        self.observer.selected = (fact, case, number)
        return case, certain


class ObservedAutograd(EvidenceAutograd):
    """What NameObserver adds to autograd."""

    observer: NameObserver

    def record(
        self, op: str, case: Case, bound: dict[str, Value], node: Syntax, certain: bool = True
    ) -> Value:
        self.observer.see_call(node, case, bound)
        return super().record(op, case, bound, node, certain)

    def make_result(self, op: str, *given: Any) -> Value:
        result = super().make_result(op, *given)
        if isinstance(result, Tensor):
            self.observer.makers.setdefault(result, op)
            operands: list[tuple[str, Tensor]] = given[2]
            certain: bool = given[-1]
            if certain and self.observer.begins_unwritten(op, result, operands):
                self.observer.counted.add(result.counter)
        return result

    def keep_saved(self, grad_node: Node, *given: Any) -> None:
        before = len(grad_node.saved)
        super().keep_saved(grad_node, *given)
        for saved in grad_node.saved[before:]:
            copied = grad_node.op in COPIES_STRIDED and not saved.tensor.dense
            if saved.certain and not copied and not self.observer.recomputed:
                self.observer.keepers.setdefault(saved.storage, []).append(grad_node)

    def augment_item(self, node: ast.AugAssign, owner: Tensor, index: Value, operand: Value) -> None:
        """`y[0] += 1` writes twice: once through the view that it reads, and once when that view is put back."""
        before = len(owner.storage.writes)
        super().augment_item(node, owner, index, operand)
        writes = owner.storage.writes
        if len(writes) > before and writes[-1].op != "index_put_":
            owner.counter.version += 1


class ObservedModules(EvidenceModules):
    """What NameObserver adds to modules and optimizers."""

    observer: NameObserver

    def checkpoint(self, *given: Any) -> Value:
        self.observer.recomputed += 1
        try:
            return super().checkpoint(*given)
        finally:
            self.observer.recomputed -= 1

    def escape(self, args: list[Value], kwargs: dict[str, Value]) -> None:
        super().escape(args, kwargs)
        for value in (*args, *kwargs.values()):
            for tensor in tensors_in(value):
                self.observer.handed_out[tensor.storage] = "unknown code was given it"


class ObservedLibraries(EvidenceLibraries):
    """What NameObserver adds to libraries."""

    observer: NameObserver

    def new_leaf(self, *given: Any) -> Tensor:
        leaf: Tensor = super().new_leaf(*given)
        self.observer.counted.add(leaf.counter)
        return leaf

    def apply_custom_function(self, *given: Any) -> Value:
        self.observer.blind += 1
        try:
            result = super().apply_custom_function(*given)
        finally:
            self.observer.blind -= 1
        for tensor in tensors_in(result):
            self.observer.counted.discard(tensor.counter)
            if tensor.node is not None:
                self.observer.functions.add(tensor.node)
        return result

    def transform(self, *given: Any) -> Value:
        transformed = super().transform(*given)
        if not isinstance(transformed, Native):
            return transformed
        inner = transformed.call

        def call(*arguments: Any) -> Value:
            self.observer.blind += 1
            try:
                return inner(*arguments)
            finally:
                self.observer.blind -= 1

        return Native(transformed.name, call)


class ObservedMachine(Machine):
    """A machine whose floors tell what they see of names."""

    loops_class = ObservedLoops
    language_class = ObservedLanguage
    objects_class = ObservedObjects
    facts_class = ObservedFacts
    autograd_class = ObservedAutograd
    nn_class = ObservedModules
    libraries_class = ObservedLibraries

    def __init__(self, program: Program, module: PythonModule, script: list[bool], budget: int) -> None:
        super().__init__(program, module, script, budget)
        self.observer = NameObserver(self)
        assert isinstance(self.loops, ObservedLoops)
        self.loops.observer = self.observer
        assert isinstance(self.language, ObservedLanguage)
        self.language.observer = self.observer
        assert isinstance(self.objects, ObservedObjects)
        self.objects.observer = self.observer
        assert isinstance(self.facts, ObservedFacts)
        self.facts.observer = self.observer
        assert isinstance(self.autograd, ObservedAutograd)
        self.autograd.observer = self.observer
        assert isinstance(self.nn, ObservedModules)
        self.nn.observer = self.observer
        assert isinstance(self.libraries, ObservedLibraries)
        self.libraries.observer = self.observer


def handed_on(loop: ast.AST) -> frozenset[str]:
    """The names that a loop binds from what they were in the round before: `total = total + loss`."""
    return remembered(loop, "handed_on", _handed_on)


def _handed_on(loop: ast.AST) -> frozenset[str]:
    found = set()
    for part in ast.walk(loop):
        if isinstance(part, ast.Assign):
            read = names_read(part.value)
            found |= {
                target.id for target in part.targets if isinstance(target, ast.Name) and target.id in read
            }
    return frozenset(found)
