"""Around every backward: audit before, books after, blame when it fails."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from gradsight.agent import audit
from gradsight.agent.arrivals import Arrival, Passage
from gradsight.agent.caught import CaughtErrors, text_of_error
from gradsight.agent.cuts import BackwardReach, reach_of, zero_path_fault
from gradsight.agent.definitions import caches, decorator_of
from gradsight.agent.dirty_values import UNRECORDED, mark_faults
from gradsight.agent.faults import Fault, Kind, Ledger, quietly, step_at
from gradsight.agent.finished import FinishedBackwards, shows_all_it_saved
from gradsight.agent.graph import (
    Node,
    is_freed,
    leading_to,
    leaf_of,
    root_nodes,
    storage_key,
    untracked,
    walk,
)
from gradsight.agent.kept_graphs import dropped_detach, keepers
from gradsight.agent.naming import name_leaves
from gradsight.agent.numbering import number_of
from gradsight.agent.oplog import Operation, OpLog
from gradsight.agent.patches import Patches
from gradsight.agent.recorder import Situation
from gradsight.agent.shadow import Shadow
from gradsight.agent.sites import (
    FrameKey,
    SourceRange,
    Stack,
    capture,
    feeds_itself,
    library_frame,
    line_of,
    place_of,
    remember_library,
    same_line,
    statement_of,
    text_of,
)
from gradsight.agent.training import TrainingWatch

_KEPT_BACKWARDS = 64
_NAMED_BACKWARDS = 3
_DEPTH_OF_A_NUMBER = 4
MODIFIED = "modified by an inplace operation"
SECOND_TIME = "backward through the graph a second time"
REBUILD = "compute the shared part again before each backward"


@dataclass(frozen=True)
class ExpectedFault:
    """What was saved at a node has been changed, and a backward is about to come to it."""

    fault: Fault
    node: Node
    arrival: Arrival


@dataclass(frozen=True)
class PastBackward:
    """A backward that freed its graph."""

    stack: Stack
    clock: int
    numbers: frozenset[int]
    root_number: int


@dataclass
class _Growth:
    """The size of the graph at one backward line, visit after visit."""

    visits: int = 0
    last_size: int = 0
    rising: int = 0
    last_youngest: int = -1
    youngest_before: int = -1


class Backwards:
    """Stands between the program and the engine."""

    def __init__(
        self,
        log: OpLog,
        ledger: Ledger,
        situation: Situation,
        shadow: Shadow | None,
        training: TrainingWatch | None,
    ) -> None:
        self.log = log
        self.ledger = ledger
        self.situation = situation
        self.shadow = shadow
        self.training = training
        self.count = 0
        self.past: list[PastBackward] = []
        self.growth: dict[Any, _Growth] = {}
        self._done: list[frozenset[int]] = []
        self.after: list[Callable[[], None]] = []
        self.wants_graph = False
        self.pause_ends: Callable[[], None] | None = None
        self.around: Callable[[], Any] | None = None
        self.on_gradients: Callable[[list[Node], frozenset[int]], None] | None = None
        self.on_graph: Callable[[list[Node], BackwardReach, tuple[Any, ...]], None] | None = None
        self.stored_at: Callable[[int], Stack] | None = None
        self.caught = CaughtErrors()
        self.finished: FinishedBackwards | None = None
        self.explain: Callable[[BaseException], Fault | None] = attached
        self.on_error: Callable[[BaseException], None] = lambda error: None
        self.on_roots: Callable[[tuple[Any, ...], Stack], None] | None = None

    def install(self, has_function: bool, patches: Patches) -> None:
        """Takes the place of torch's call into the engine, in whichever form this torch has it."""
        self._listen_to_refusals(patches)
        graph: Any = torch.autograd.graph
        if has_function:
            original = graph._engine_run_backward

            def run(roots: Any, *args: Any, **kwargs: Any) -> Any:
                if not patches.active:
                    return original(roots, *args, **kwargs)
                return self.run(original, roots, args, kwargs)

            patches.put(graph, "_engine_run_backward", run)
            patches.put(torch.autograd, "_engine_run_backward", run)
            return
        variable: Any = torch.autograd.Variable
        patches.put(variable, "_execution_engine", _EngineProxy(variable._execution_engine, self))

    def _listen_to_refusals(self, patches: Patches) -> None:
        """What torch refuses before it asks the engine: a backward from a tensor that is no scalar."""
        module: Any = torch.autograd
        original = getattr(module, "_make_grads", None)
        if original is None:
            return

        def make_grads(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except Exception as error:
                if patches.active:
                    self.note_error(error, capture(2))
                    self.on_error(error)
                raise

        patches.put(module, "_make_grads", make_grads)

    def run(self, original: Any, roots: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One backward or one `autograd.grad`."""
        stack = capture(3)
        remember_library(stack, library_frame(sys._getframe(1)))
        roots = tuple(roots) if isinstance(roots, (list, tuple)) else (roots,)
        if self.pause_ends is not None:
            self.pause_ends()
        self.situation.library_step = 0
        with untracked():
            nodes, reach, is_exact, expected, heard = self._before(roots, args, kwargs, stack) or (
                [],
                None,
                False,
                [],
                {},
            )
        self.situation.backwards_running += 1
        outer, self.situation.backward_stack = self.situation.backward_stack, stack
        try:
            if self.around is None:
                result = original(roots, *args, **kwargs)
            else:
                with self.around():
                    result = original(roots, *args, **kwargs)
        except Exception as error:
            with untracked():
                self._judge(expected, nodes, is_finished=False)
                self._failed(error, roots, stack)
            self.note_error(error, stack)
            self.on_error(error)
            raise
        finally:
            self.situation.backwards_running -= 1
            self.situation.backward_stack = outer
            self.situation.stack = None
            for passages in heard.values():
                for passage in passages:
                    passage.end()
        with untracked():
            if self.finished is not None:
                inputs = args[3] if len(args) > 3 else ()
                self.finished.note(stack, leading_to(inputs, nodes) if inputs else nodes, is_exact)
            self._judge(expected, nodes, is_finished=True)
            unfelt = {bit for bit, passages in heard.items() if not any(each.came for each in passages)}
            self._after(result, roots, nodes, reach, args, kwargs, stack, unfelt)
        for follow in self.after:
            follow()
        return result

    @quietly
    def _before(
        self, roots: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any], stack: Stack
    ) -> tuple[list[Node], BackwardReach | None, bool, list[ExpectedFault], dict[int, list[Passage]]]:
        """The graph, who is reached, whether everything that was saved is as it was, the faults if it is not, and who listens."""
        if self.on_roots is not None:
            self.on_roots(roots, stack)
        if self.shadow is None or self.training is None:
            return [], None, False, [], {}
        nodes = walk(roots)
        accumulates = bool(kwargs.get("accumulate_grad", True))
        inputs = args[3] if len(args) > 3 else ()
        limit = self._mask_of(inputs) if inputs and accumulates else None
        self.training.backwards += 1
        reach = reach_of(self.training.backwards, roots, nodes, self.shadow, stack, limit)
        if inputs and not accumulates:
            # `autograd.grad` says whose gradient it wants: nobody else misses one.
            reach = replace(reach, missing=reach.missing & self._mask_of(inputs))
        if self.count < _NAMED_BACKWARDS:
            name_leaves(self.shadow)
        clashes = audit.find_silent(nodes, self.log) if not inputs or self.finished is not None else []
        found = [
            (clash, audit.fault_of(clash, stack, "", self._parameter_of))
            for clash in (clashes if not inputs else ())
        ]
        heard = self._listen_for(reach, nodes) if accumulates else {}
        expected = [
            ExpectedFault(fault, clash.node, Arrival(clash.node, clash.is_looked_at))
            for clash, fault in found
            if fault is not None
        ]
        is_exact = self.finished is not None and not clashes and shows_all_it_saved(nodes)
        if accumulates and self.on_graph is not None:
            self.on_graph(nodes, reach, roots)
        return nodes, reach, is_exact, expected, heard

    def _listen_for(self, reach: BackwardReach, nodes: list[Node]) -> dict[int, list[Passage]]:
        """Listeners for the writes that autograd did not record and that this loss has read, by the bits of their events."""
        assert self.shadow is not None
        heard = {}
        for event in self.shadow.events_in(reach.events) if reach.events else ():
            passages = event.reads.listen(nodes) if event.kind in UNRECORDED else None
            if passages is not None:
                heard[event.bit] = passages
        return heard

    @quietly
    def _judge(self, expected: list[ExpectedFault], nodes: list[Node], is_finished: bool) -> None:
        """What was changed behind torch's back has a meaning where a gradient came to it, or might have come."""
        for one in expected:
            one.arrival.end()
            if one.arrival.came or not is_finished:
                self._add(one.fault, nodes, one.node)

    @quietly
    def _after(
        self,
        result: Any,
        roots: tuple[Any, ...],
        nodes: list[Node],
        reach: BackwardReach | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        stack: Stack,
        unfelt: set[int],
    ) -> None:
        self.count += 1
        retains = bool(args[1]) if len(args) > 1 else False
        accumulates = bool(kwargs.get("accumulate_grad", True))
        numbers = frozenset(number_of(node) for node in nodes if node.next_functions)
        if not retains:
            number = max((number_of(node) for node in root_nodes(roots)), default=-1)
            self.past.append(PastBackward(stack, self.log.clock, numbers, number))
            del self.past[:-_KEPT_BACKWARDS]
        if self.shadow is None or self.training is None or reach is None:
            return
        self.training.backward_done(reach, accumulates)
        self.training.unasked.used(numbers)
        if accumulates:
            trained = self.training.trained_by(reach)
            for fault in mark_faults(
                reach, nodes, self.shadow, trained, self.training.managed, self._is_done, unfelt
            ):
                # What was saved and overwritten behind torch's back is the worse half of the same story.
                if not self.ledger.has("saved-changed-silently", fault.place):
                    self._add(fault, nodes, None)
            self._done.append(numbers)
            del self._done[:-_KEPT_BACKWARDS]
            zero = zero_path_fault(reach, nodes, self.shadow, self.log, self.training.trained)
            if zero is not None:
                self._add(zero, nodes, None)
            self._watch_growth(nodes, retains, stack)
            if self.on_gradients is not None:
                self.on_gradients(nodes, numbers)
        elif not (len(args) > 2 and args[2]):
            self._mark_constant_gradients(result, reach, args[3] if len(args) > 3 else (), stack)

    def _mark_constant_gradients(self, result: Any, reach: Any, inputs: Any, stack: Stack) -> None:
        """Gradients taken without `create_graph` depend on the leaves, and autograd does not know it."""
        assert self.shadow is not None
        event = self.shadow.event("create_graph", "autograd.grad", stack, reach.reached)
        self.shadow.constant_gradients |= 1 << event.bit
        for tensor in inputs:
            if isinstance(tensor, torch.Tensor):
                event.live |= self.shadow.read(tensor)[0]
                event.sources.add(storage_key(tensor))
        for gradient in result if isinstance(result, (list, tuple)) else (result,):
            if isinstance(gradient, torch.Tensor) and not gradient.requires_grad:
                self.shadow.write(gradient, reach.reached, 1 << event.bit, 0)

    def _is_done(self, number: int) -> bool:
        """Whether an earlier backward ran through this node."""
        return any(number in numbers for numbers in self._done)

    def has_trained(self, tensor: torch.Tensor) -> bool:
        """Whether a backward has been through the graph of this tensor, or through what lies next below it."""
        ring = [tensor.grad_fn] if tensor.grad_fn is not None else []
        for _ in range(_DEPTH_OF_A_NUMBER):
            if any(self._is_done(number_of(node)) for node in ring if node.next_functions):
                return True
            ring = [below for node in ring for below, _ in node.next_functions if below is not None][:16]
        return False

    def _mask_of(self, inputs: Any) -> int:
        assert self.shadow is not None
        mask = 0
        for tensor in inputs:
            if isinstance(tensor, torch.Tensor) and tensor.is_leaf and tensor.requires_grad:
                leaf = self.shadow.leaf(tensor)
                mask |= 1 << leaf.bit if leaf is not None else 0
        return mask

    def _watch_growth(self, nodes: list[Node], retains: bool, stack: Stack) -> None:
        """A graph that holds its predecessors grows with each visit of the same backward line."""
        if not stack:
            return
        inner = [number_of(node) for node in nodes if node.next_functions]
        if not inner:
            return
        growth = self.growth.setdefault(stack[0], _Growth())
        # A trunk that all of them share is older than the iteration before: what that one made itself is carried on.
        carries = growth.visits > 0 and any(
            growth.youngest_before < number <= growth.last_youngest for number in inner
        )
        growth.rising = growth.rising + 1 if carries and len(inner) > growth.last_size else 0
        growth.visits += 1
        growth.last_size = len(inner)
        growth.youngest_before, growth.last_youngest = growth.last_youngest, max(inner)
        if growth.rising == 2:
            place = place_of(stack[0])
            message = f"the graph of `{text_of(place)}` grows with every iteration: it still holds all earlier iterations"
            self.ledger.add(
                Fault(
                    "graph-grows" if retains else "state-carried",
                    message,
                    place,
                    (),
                    "warning",
                    {"nodes": len(inner), "visits": growth.visits},
                )
            )

    @quietly
    def note_error(self, error: BaseException, stack: Stack, in_backward: bool = True) -> None:
        """An error of torch is on its way up; whoever catches it, it belongs to this run."""
        self.caught.note(error, stack, lambda: attached(error) or self.explain(error), in_backward)

    @quietly
    def _failed(self, error: BaseException, roots: tuple[Any, ...], stack: Stack) -> None:
        """Names the lines behind a failed backward, on the error itself: it may still be caught."""
        message = text_of_error(error)
        fault: Fault | None = None
        nodes = walk(roots)
        broken: Node | None = None
        if MODIFIED in message and "is at version" in message:
            clashes = audit.find_refused(nodes, self.log, message)
            broken = clashes[0].node if clashes else None
            faults = audit.faults_of_refused(clashes, stack, message, self._parameter_of)
            if faults:
                fault = replace(faults[0], others=tuple(faults[1:]))
            if fault is None:
                fault = self._hidden_fault(message, stack)
        elif SECOND_TIME in message:
            broken, fault = self._second_fault(nodes, roots, message, stack)
        if fault is not None:
            attach(error, self._with_graph(fault, nodes, broken))

    def _parameter_of(self, storage: int) -> str:
        """The name of the leaf in this memory, empty when nobody knows one."""
        if self.shadow is None:
            return ""
        name_leaves(self.shadow)
        for leaf in self.shadow.leaves:
            tensor = leaf.tensor()
            if tensor is not None and leaf.name and storage_key(tensor) == storage:
                return leaf.name
        return ""

    def _hidden_fault(self, message: str, stack: Stack) -> Fault | None:
        writes = audit.hidden_clash(self.log, message)
        if not writes:
            return None
        write = writes[-1]
        place = place_of(write.stack[0])
        text = f"`{text_of(place)}` overwrites a tensor that a checkpointed part of the graph saved"
        steps = (
            *step_at("written", "the last write that fits torch's message", write.stack),
            *step_at("needed", "needed by this backward", stack),
        )
        kind: Kind = "parameter-stepped" if write.to_leaf or write.by_optimizer else "saved-overwritten"
        return Fault(kind, text, place, steps, "error", {"torch": message, "matched_by": "shape and version"})

    def _second_fault(
        self, nodes: list[Node], roots: tuple[Any, ...], message: str, stack: Stack
    ) -> tuple[Node | None, Fault | None]:
        if not stack:
            return None, None
        # This backward has freed nodes of its own before it failed: only what an earlier one freed counts.
        freed = [node for node in nodes if is_freed(node) and self._first_backward(node) is not None]
        node = max(freed, key=number_of, default=None)
        first = self._first_backward(node)
        maker = self.log.maker(node) if node is not None else None
        carried = self._crossing(nodes, set(freed), first) if first is not None else None
        # A part made once before the loop is shared; one that the loop makes anew each time is carried over.
        is_loop_state = (
            maker is not None and first is not None and self.log.ran_since(maker.stack, first.clock)
        )
        place = place_of(stack[0])
        steps: list[Any] = []
        if maker is not None:
            steps += step_at("made", "this part of the graph is shared", maker.stack)
        if first is not None:
            steps += step_at("call", "the first backward frees it", first.stack)
        steps += step_at("needed", "the second backward needs it again", stack)
        evidence = {"torch": message, "node": node.name() if node is not None else ""}
        cached = self._cached_by(maker, first)
        if cached is not None:
            text = f"`{text_of(cached)}` keeps a result with its graph, which the first backward has freed"
            return node, Fault("state-carried", text, cached, tuple(steps), "error", evidence)
        if first is not None and carried is not None and is_loop_state and same_line(first.stack, stack):
            place = place_of(self._carrying_frame(*carried))
            text = f"`{text_of(place)}` carries the graph of the previous iteration, which backward has freed"
            steps += step_at("read", "the old graph enters the new one here", carried[0].stack)
            if self.stored_at is None:
                crossing = carried[0].stack[0]
                steps[:0] = dropped_detach(crossing) or keepers(carried[1], crossing)
            return node, Fault("state-carried", text, place, tuple(steps), "error", evidence)
        where = (
            f" (freed by the backward on line {line_of(first.stack[0])})"
            if first is not None and first.stack
            else ""
        )
        text = f"`{text_of(place)}` goes through a graph a second time{where}"
        has_learned = self.training is not None and bool(self.training.steps)
        if first is not None and maker is not None and has_learned and same_line(first.stack, stack):
            # A graph that is kept would go on with the values from before the first step.
            evidence["help"] = REBUILD
        return node, Fault("backward-twice", text, place, tuple(steps), "error", evidence)

    def _cached_by(self, maker: Operation | None, first: PastBackward | None) -> SourceRange | None:
        """The decorator that keeps the result of the function which made a freed part, and has not run since."""
        if maker is None or first is None or self.log.ran_since(maker.stack, first.clock):
            return None
        for key in maker.stack:
            found = decorator_of(key, caches)
            if found is not None:
                return found
        return None

    def _first_backward(self, node: Node | None) -> PastBackward | None:
        if node is None:
            return None
        number = number_of(node)
        for past in reversed(self.past):
            if number in past.numbers:
                return past
        if self.shadow is not None:
            return None
        maker = self.log.maker(node)
        since = maker.clock if maker is not None else -1
        for past in self.past:
            if past.root_number >= number and past.clock >= since:
                return past
        return None

    def _carrying_frame(self, operation: Operation, old: Node) -> FrameKey:
        """The line that keeps the old graph: where it was put into a collection, or where a name feeds itself."""
        stored = self.stored_at(number_of(old)) if self.stored_at is not None else ()
        if stored:
            return stored[0]
        made = self.log.maker(old)
        for key in (*reversed(operation.stack), *reversed(made.stack if made is not None else ())):
            if feeds_itself(statement_of(key)):
                return key
        return operation.stack[0]

    def _crossing(
        self, nodes: list[Node], freed: set[Node], first: PastBackward
    ) -> tuple[Operation, Node] | None:
        """The operation that took a tensor of the freed graph into the new one, and the node it took."""
        for node in sorted(nodes, key=number_of):
            maker = self.log.maker(node)
            if node in freed or maker is None or maker.clock <= first.clock or not maker.stack:
                continue
            for successor, _ in node.next_functions:
                if successor is None or leaf_of(successor) is not None:
                    continue
                below = self.log.maker(successor)
                if successor in freed or (below is not None and below.clock <= first.clock):
                    return maker, successor
        return None

    def _add(self, fault: Fault, nodes: list[Node], broken: Node | None) -> None:
        self.ledger.add(self._with_graph(fault, nodes, broken))

    def _with_graph(self, fault: Fault, nodes: list[Node], broken: Node | None) -> Fault:
        if not self.wants_graph:
            return fault
        drawing = audit.graph_around(nodes, broken, self.log, self._parameter_of)
        return replace(fault, graph=drawing)


class _EngineProxy:
    """The engine object of torch releases that have no Python function around the engine call."""

    def __init__(self, engine: Any, backwards: Backwards) -> None:
        self._engine = engine
        self._backwards = backwards

    def run_backward(self, roots: Any, *args: Any, **kwargs: Any) -> Any:
        return self._backwards.run(self._engine.run_backward, roots, args, kwargs)

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)


def attach(error: BaseException, fault: Fault) -> None:
    """Leaves a fault on the error it explains; the first explanation stays."""
    if getattr(error, "_gradsight_fault", None) is None:
        error.__dict__["_gradsight_fault"] = fault


def attached(error: BaseException) -> Fault | None:
    """The fault that explains this error."""
    fault = getattr(error, "_gradsight_fault", None)
    return fault if isinstance(fault, Fault) else None
