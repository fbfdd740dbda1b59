"""Listens to a watched path and notes what is seen of every tensor name and operator, for cards.

*Sighting*: a name stood for a tensor at one moment of one path.  What can change later is noted at that moment; who keeps
the tensor for backward is gathered until the path ends.
"""

from __future__ import annotations

import ast
from collections import Counter as Counted
from collections.abc import Mapping

from gradsight.interp.path_state import Deaf, PathState
from gradsight.interp.paths.grad_fns import WRITTEN_INSIDE
from gradsight.interp.paths.unfollowed_arms import Keeping
from gradsight.interp.python.statements import LoopRun
from gradsight.interp.syntax import names_read, remembered
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.interp.tensors.writes import MOVES
from gradsight.model.sites import Frame, Unit
from gradsight.model.tensors import Counter, Maybe, Node, RequiresGrad, Storage, Tensor, Write
from gradsight.model.trace import (
    AbsentGradUsed,
    ArgumentsBound,
    CaseSelected,
    ConditionAsked,
    CustomReturned,
    Entered,
    Fact,
    HandedOut,
    Handler,
    LeafMade,
    Left,
    LoopEnded,
    NameSeen,
    OperandsSaved,
    Recording,
    ResultsMade,
    WriteRefused,
)
from gradsight.model.trace.looks import Place
from gradsight.model.values import Number, Unknown, Value, is_constant, tensors_in
from gradsight.ops.fact import Case, OpFact

MOST_PER_NAME = 24
"""So many moments tell whether a name always stands for the same kind of tensor."""

COPIES_STRIDED = frozenset("Linear bilinear einsum linear matmul".split())
"""Products that bring a tensor with gaps or turned dimensions into order first, and keep that copy."""


class CallSighting:
    """One call of an operator at one moment, and the case of its fact that it met; None where that is not certain."""

    __slots__ = ("case", "copied", "fact", "is_cast", "is_recorded", "numbers", "unit")

    def __init__(
        self, unit: Unit, fact: OpFact, case: int | None, numbers: frozenset[str], is_cast: bool
    ) -> None:
        self.is_recorded = True
        self.unit = unit
        self.fact = fact
        self.case = case
        self.numbers = numbers
        self.is_cast = is_cast
        self.copied: frozenset[str] = frozenset()


class Sighting:
    """One name at one moment."""

    __slots__ = ("base", "escaped", "frame", "is_assigned", "is_recalled", "loops", "node", "records", "requires", "shape", "storage", "syntax", "tensor", "unit",
                 "version", "writes")  # fmt: skip

    def __init__(self, syntax: ast.AST, frame: Frame, tensor: Tensor, is_assigned: bool) -> None:
        self.syntax = syntax
        self.unit: Unit = frame.unit
        self.frame = frame
        self.loops = frame.loops
        self.tensor = tensor
        self.is_assigned = is_assigned
        self.requires: bool | Maybe = tensor.needs_grad()
        self.node: Node | None = tensor.node
        self.shape = tensor.shape  # `t.squeeze_()` changes it
        self.base = tensor.base  # `detach_()` makes a view stand alone
        self.version = tensor.counter.version
        self.storage = tensor.storage  # `tensor.data = ...` gives a tensor other memory
        self.writes = len(tensor.storage.writes)
        self.escaped = ""
        self.is_recalled = False
        self.records = True


class Onlookers(Deaf):
    """The audience of paths that are executed for what they show: each has a listener of its own, and nothing is concluded."""

    watches = True

    def listen(self, path: PathState) -> NameObserver:
        return NameObserver(path)


class NameObserver:
    """Remembers sightings of names and calls by their syntax nodes."""

    def __init__(self, path: PathState) -> None:
        self.path = path
        self.sightings: dict[ast.AST, list[Sighting]] = {}
        self.calls: dict[ast.AST, list[CallSighting]] = {}
        self.bound: set[ast.AST] = set()
        """The names and attributes, as written, that something was assigned to."""
        self.selected: tuple[OpFact, Case, int | None] | None = None
        """The fact and the case of it that were chosen last."""
        self.conditions: dict[ast.AST, list[dict[str, Sighting]]] = {}
        """What the names of a frame stood for each time that a condition in it was asked."""
        self.keepers: dict[Storage, list[tuple[Node, str]]] = {}
        """Who keeps some memory for backward, and as which of its operands."""
        self.kept: set[Keeping] = set()
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
        self.is_refused = False
        """Whether torch has refused a write, or Python a gradient that is None: it goes no further on this path."""
        self.places: Counted[Place] = Counted()
        """The places of execution that were entered and not left yet."""
        self.openings: list[ast.AST | None] = []
        """The calls that opened them."""
        self.handlers: dict[type, Handler] = {
            NameSeen: self.on_name_seen,
            ConditionAsked: self.on_condition_asked,
            ArgumentsBound: self.on_arguments_bound,
            CaseSelected: self.on_case_selected,
            Recording: self.on_recording,
            ResultsMade: self.on_results_made,
            OperandsSaved: self.on_operands_saved,
            LoopEnded: self.on_loop_ended,
            HandedOut: self.on_handed_out,
            LeafMade: self.on_leaf_made,
            Entered: self.on_entered,
            Left: self.on_left,
            CustomReturned: self.on_custom_returned,
            WriteRefused: self.on_write_refused,
            AbsentGradUsed: self.on_absent_grad_used,
        }

    def hear(self, fact: Fact) -> None:
        handler = self.handlers.get(type(fact))
        if handler is not None:
            handler(fact)

    def finish(self) -> None:
        """What was seen is asked for by whoever had the path executed."""

    def let_go(self) -> None:
        """What was seen refers to the path."""

    # -- names and calls ---------------------------------------------------------------------------------------------

    def on_name_seen(self, fact: NameSeen) -> None:
        if fact.is_assigned:
            self.bound.add(fact.syntax)
        self.see(fact.syntax, fact.value, self.path.frame, fact.is_assigned)

    def on_arguments_bound(self, fact: ArgumentsBound) -> None:
        function, names, caller = fact.function, fact.names, self.path.frame
        inside = Frame(function.name, function.unit, names, None, caller.depth + 1, caller.numbering)
        inside.loops, inside.call_site = caller.loops, None
        signature = function.node.args
        for parameter in (*signature.posonlyargs, *signature.args, *signature.kwonlyargs):
            self.see(parameter, names.get(parameter.arg), inside)

    def on_condition_asked(self, fact: ConditionAsked) -> None:
        asked = self.conditions.setdefault(fact.syntax, [])
        if len(asked) < MOST_PER_NAME:
            frame = self.path.frame
            asked.append(
                {
                    name: Sighting(fact.syntax, frame, value, False)
                    for name, value in fact.names.items()
                    if type(value) is Tensor
                }
            )

    def see(self, syntax: ast.AST, value: Value, frame: Frame, is_assigned: bool = False) -> None:
        """Note that a name stands for a tensor now."""
        tensor = value.tensor if type(value) is Unknown else value
        if type(tensor) is not Tensor or self.places["custom function"] or self.places["transform"]:
            return
        if self.is_refused and syntax in clean_up_in(frame.unit.tree):
            # Torch has raised on the way here: what stands between is not executed.
            return
        known = self.sightings.setdefault(syntax, [])
        sighting = Sighting(syntax, frame, tensor, is_assigned)
        sighting.escaped = self.handed_out.get(tensor.storage, "")
        sighting.is_recalled = self.is_read_again(syntax, frame)
        sighting.records = self.path.grad_mode and not self.path.inference
        if self.unfinished:
            # Lists that rounds fill are shorter here than they will be.
            sighting.shape = None
        if len(known) < MOST_PER_NAME:
            known.append(sighting)
        else:
            known[-1] = sighting

    def is_read_again(self, syntax: ast.AST, frame: Frame) -> bool:
        """A checkpoint calls its function again in backward, when a name from around it, or an attribute, may have another value."""
        is_free = isinstance(syntax, ast.Attribute) or (
            isinstance(syntax, ast.Name) and syntax.id not in frame.namespace
        )
        return is_free and self.places["checkpoint"] > 0

    def on_case_selected(self, fact: CaseSelected) -> None:
        conditions = [each.when for each in fact.fact.cases]
        is_told = fact.is_certain and fact.case.when in conditions
        self.selected = (fact.fact, fact.case, conditions.index(fact.case.when) if is_told else None)

    def on_recording(self, fact: Recording) -> None:
        """Note which case of which fact a call met."""
        selected, self.selected = self.selected, None
        if selected is None or selected[1] is not fact.case or self.path.frame.unit.library:
            return
        if fact.node in self.openings:
            # One of several layers that the call applies.
            return
        if self.places["hooked layer"] or any(
            isinstance(value, Tensor) and value.view_made_without_grad for value in fact.arguments.values()
        ):
            # The layer is given something else; a view made with grad mode off says that it requires grad, and nothing is saved.
            return
        if isinstance(fact.node, (ast.BinOp, ast.AugAssign)) and any(
            type(value) is Unknown and value.hint != "number" for value in fact.arguments.values()
        ):
            # Between two tensors the sign is another operator.
            return
        known = self.calls.setdefault(fact.node, [])
        if len(known) < MOST_PER_NAME:
            numbers = {
                name
                for name, value in fact.arguments.items()
                if is_constant(value) or isinstance(value, Number)
            }
            if is_spelled_out(fact.node):
                numbers |= {name for name in selected[0].defaults if name not in fact.arguments}
            sighting = CallSighting(
                self.path.frame.unit, selected[0], selected[2], frozenset(numbers), self.path.autocast
            )
            is_on = self.path.grad_mode and not self.path.inference
            sighting.is_recorded = is_on and may_be_recorded(selected[0], fact.arguments)
            known.append(sighting)

    # -- what tensors are made of, and who keeps them ----------------------------------------------------------------

    def on_results_made(self, fact: ResultsMade) -> None:
        for result in fact.results:
            if isinstance(result, Tensor):
                self.makers.setdefault(result, fact.op)
                if fact.is_certain and self.begins_unwritten(fact.op, result, fact.operands):
                    self.counted.add(result.counter)

    def on_operands_saved(self, fact: OperandsSaved) -> None:
        node = fact.node
        if self.is_refused or (isinstance(node.requires, Maybe) and node.requires.weak):
            # It is not recorded, or that is not known.
            return
        if fact.copied and (calls := self.calls.get(node.site.node)):
            calls[-1].copied = fact.copied
        for saved in fact.saved:
            copied = node.op in COPIES_STRIDED and not saved.tensor.dense
            if saved.certain and not copied and not self.places["checkpoint"]:
                self.keepers.setdefault(saved.storage, []).append((node, saved.role))
                self.kept.add(Keeping(node.site.node, saved.role, saved.tensor.root().site.node))

    def on_write_refused(self, fact: WriteRefused) -> None:
        self.is_refused = self.is_refused or not fact.assumption

    def on_absent_grad_used(self, fact: AbsentGradUsed) -> None:
        self.is_refused = True

    def on_leaf_made(self, fact: LeafMade) -> None:
        self.counted.add(fact.tensor.counter)

    def on_custom_returned(self, fact: CustomReturned) -> None:
        for tensor in tensors_in(fact.result):
            self.counted.discard(tensor.counter)
            if tensor.node is not None:
                self.functions.add(tensor.node)

    def on_handed_out(self, fact: HandedOut) -> None:
        for value in fact.values:
            for tensor in tensors_in(value):
                self.handed_out[tensor.storage] = "unknown code was given it"

    # -- where the path is -------------------------------------------------------------------------------------------

    def on_entered(self, fact: Entered) -> None:
        self.places[fact.place] += 1
        self.openings.append(fact.node)

    def on_left(self, fact: Left) -> None:
        self.places[fact.place] -= 1
        self.openings.pop()

    def on_loop_ended(self, fact: LoopEnded) -> None:
        run = fact.run
        if run.length is None or run.number < run.length or run.skips:
            self.unfinished.add(run)
        else:
            self.finished.add(run)

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
        """Whether the write is one write in torch too: no optimizer's, not refused, and not in rounds that were left out."""
        owner = write.writer.root()
        if write.mode == "graph" and owner.is_leaf and owner.requires_grad is True:
            return False
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

    def is_in_part_of_a_loop(self, sighting: Sighting) -> bool:
        """Whether it was seen in a loop of which rounds were left out."""
        return any(run not in self.finished for run, _ in sighting.loops)

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


def handed_on(loop: ast.AST) -> frozenset[str]:
    """The names that a loop binds from what they were in the round before: `total = total + loss`."""
    return remembered(loop, "handed_on", _handed_on)


def _handed_on(loop: ast.AST) -> frozenset[str]:
    found = set()
    for part in syntax_parts(loop):
        if isinstance(part, ast.Assign):
            read = names_read(part.value)
            found |= {
                target.id for target in part.targets if isinstance(target, ast.Name) and target.id in read
            }
    return frozenset(found)


def clean_up_in(statements: list[ast.stmt]) -> set[ast.AST]:
    """What is executed where an error is on its way: the handlers and the `finally` of every `try`."""
    return {
        part
        for statement in statements
        for outer in syntax_parts(statement)
        if isinstance(outer, ast.Try)
        for inner in (*outer.handlers, *outer.finalbody)
        for part in syntax_parts(inner)
    }


def is_spelled_out(node: ast.AST) -> bool:
    """Whether a call shows all of its arguments: what it does not show was not given."""
    return not isinstance(node, ast.Call) or not (
        any(isinstance(argument, ast.Starred) for argument in node.args)
        or any(keyword.arg is None for keyword in node.keywords)
    )


def may_be_recorded(fact: OpFact, arguments: Mapping[str, Value]) -> bool:
    """Whether something that an operator is given may require grad; a layer has parameters of its own."""
    if fact.name.startswith("nn."):
        return True
    tensors = [one for value in arguments.values() for one in tensors_in(value)]
    is_known = all(is_constant(value) or tensors_in(value) for value in arguments.values())
    return (
        not is_known
        or not tensors
        or any(
            (flag := one.needs_grad()) is not False or stems_from_unrecorded_view(one, flag)
            for one in tensors
        )
    )


def stems_from_unrecorded_view(tensor: Tensor, requires: RequiresGrad) -> bool:
    """Whether it is a view made with grad mode off of something that requires grad, or was computed from one."""
    if tensor.view_made_without_grad and tensor.base is not None and tensor.base.needs_grad() is not False:
        return True
    return requires is False and any(
        cut.kind in ("no_grad", "inference") and cut.op in MOVES for cut in tensor.cuts
    )
