"""The recorder below autograd: a dispatch mode that logs operations and writes, and carries the shadow along.

It sees every operator that reaches a kernel, from user code, library code and the engine alike, with the schema's
word on what is written.
"""

from __future__ import annotations

import sys
import traceback
from threading import get_ident
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gradsight.agent.changes import Change, change_of
from gradsight.agent.faults import Ledger, quietly
from gradsight.agent.graph import Witness, geometry_of, is_own_leaf, storage_key
from gradsight.agent.numbering import IS_NATIVE, next_number, number_of
from gradsight.agent.oplog import LoggedWrite, Operation, OpLog
from gradsight.agent.origins import Origins
from gradsight.agent.shadow import Divergence, Mask, Shadow
from gradsight.agent.sites import Stack, capture, capture_from, is_user_file, library_frame
from gradsight.agent.touches import Touches
from gradsight.agent.traits import Trait, trait_of, written_tensors

_current_node = torch._C._current_autograd_node
_grad_enabled = torch.is_grad_enabled
_in_inference = torch.is_inference_mode_enabled
_no_function_mode = torch._C.DisableTorchFunction
_bump = torch.autograd.graph.increment_version if hasattr(torch.autograd.graph, "increment_version") else None


class Situation:
    """What the program is doing right now, shared by all instruments."""

    def __init__(self) -> None:
        self.backwards_running = 0
        self.library_step = 0
        self.quiet = 0
        self.alias_kind = "detach"
        self.grad_writes: Any = None
        self.gradient_edits: Any = None
        # The function of the API that was called last: what runs below it is its own business.
        self.call: Any = None
        self.stack: Stack | None = None
        self.stack_thread = 0
        self.backward_stack: Stack = ()
        self.checkpoint: Stack = ()
        self.custom_functions = 0
        # Tensors that a function transform differentiates by and that nobody has used yet.
        self.unused: set[int] | None = None
        self.inference: Stack = ()
        # Pack hooks of ours that must be off for a while; None when there are none.
        self.hooks_off: Any = None

    def is_in_place(self, operator: str) -> bool:
        """Whether the user asked for this write, rather than a composite function that tidies its own temporaries."""
        name = getattr(self.call, "__name__", "")
        if not name or name == "__setitem__" or (name.endswith("_") and not name.endswith("__")):
            return True
        return name.startswith("__i") or operator.endswith(f"::{name}_")


class Shade(NamedTuple):
    """What the inputs of a call bring with them."""

    inputs: list[torch.Tensor]
    targets: list[torch.Tensor]
    numbers: tuple[Mask, Mask]
    deps: Mask
    live: Mask
    events: Mask


class DispatchRecorder(TorchDispatchMode):
    """Logs what runs.  With a shadow it also follows where values come from."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled in a probe, and torch's guard against it would cost more than the recording."""
        return False

    def __init__(
        self, log: OpLog, ledger: Ledger, situation: Situation, shadow: Shadow | None, origins: Origins | None
    ) -> None:
        super().__init__()
        self.ledger = ledger
        self.log = log
        self.situation = situation
        self.shadow = shadow
        self.origins = origins
        self.assume_values: Any = None
        # The operator that ran last, detaching ones left out.
        self.previous = ""
        # The line that built the in-place module whose forward is running inside a container, if any.
        self.builder: Any = None
        self.touches: Touches | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        situation = self.situation
        if situation.quiet:
            return func(*args, **kwargs)
        with _no_function_mode():
            trait = trait_of(func)
            log = self.log
            log.clock += 1
            if situation.library_step:
                return self._run(trait, func, args, kwargs)
            grad_enabled = _grad_enabled()
            if not grad_enabled and _in_inference():
                situation.inference = capture(2)
            if situation.backwards_running:
                if not grad_enabled:
                    if trait.writes:
                        self._note_writes(trait, args, kwargs, self._stack_in_backward(sys._getframe(1)))
                    return self._run(trait, func, args, kwargs)
                stack = capture(2)
            else:
                # Whatever runs below one call of the API runs for the same line of the user; an operator that user
                # code reaches without the API (an indexing of old torch, a constructor) has a line of its own.
                caller = sys._getframe(1)
                known = situation.stack
                if (
                    known is None
                    or situation.stack_thread != get_ident()
                    or is_user_file(caller.f_code.co_filename)
                ):
                    known = situation.stack = capture_from(caller)
                    situation.stack_thread = get_ident()
                stack = known
            number = next_number()
            track = log.track()
            if IS_NATIVE and track.wants(number):
                track.add(number, Operation(log.clock, trait.name, stack))
            if self.touches is not None:
                self._note_reads(self.touches, args, stack)
            change = None
            if trait.writes:
                change = change_of(trait.name, args, kwargs)
                self._note_writes(trait, args, kwargs, stack, change)
            if self.shadow is None or trait.shape_only:
                result = self._run(trait, func, args, kwargs)
            else:
                result = self._follow(trait, func, args, kwargs, grad_enabled, stack, change)
            if self.touches is not None:
                self._note_made(self.touches, result, stack)
            return result

    @quietly
    def _note_made(self, touches: Touches, result: Any, stack: Stack) -> None:
        for tensor in _tensors_in(result):
            touches.note_made(tensor, stack)

    @quietly
    def _note_reads(self, touches: Touches, args: Any, stack: Stack) -> None:
        for value in args:
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(item, torch.Tensor):
                    touches.note(item, stack, self.log.clock, False)

    def _stack_in_backward(self, caller: FrameType) -> Stack:
        """The user's frames during a backward: those of its call, unless a hook of the user is running."""
        if caller.f_code.co_name == "_engine_run_backward":
            return self.situation.backward_stack
        return capture_from(caller)

    def _run(self, trait: Trait, func: Any, args: Any, kwargs: Any) -> Any:
        if self.assume_values is not None:
            known, assumed = self.assume_values(trait.name, args)
            if known:
                return assumed
        result = func(*args, **kwargs)
        if trait.foreach and trait.writes and _bump is not None:
            # The CPU foreach kernels bump versions through inner calls, which run below autograd under a dispatch
            # mode and lose the bump; without this an optimizer step between two backwards would look harmless.
            for tensor in written_tensors(trait, args, kwargs):
                _bump(tensor)
        return result

    @quietly
    def _note_writes(
        self, trait: Trait, args: Any, kwargs: Any, stack: Stack, change: Change | None = None
    ) -> None:
        node = _current_node() if self.situation.backwards_running else None
        node_name = node.name() if node is not None else ""
        if self.builder is not None and node is None:
            built = self.builder()
            if built:
                stack = (*built[:1], *stack)
        library = library_frame(sys._getframe(2))
        for tensor in written_tensors(trait, args, kwargs):
            if tensor.layout is not torch.strided or _copies_itself(trait, args):
                continue
            is_inference = tensor.is_inference()
            self.log.note_write(
                tensor,
                LoggedWrite(
                    self.log.clock,
                    trait.name,
                    stack,
                    0 if is_inference else tensor._version,
                    geometry_of(tensor),
                    node_name,
                    is_own_leaf(tensor),
                    witness=Witness(tensor.detach()) if trait.name.startswith("c10d::") else None,
                    library=library,
                    change=change,
                ),
            )
            if self.situation.grad_writes is not None:
                self.situation.grad_writes(tensor, trait, stack, node_name)
            if node is not None and stack and self.situation.gradient_edits is not None:
                self.situation.gradient_edits(tensor, stack)

    def _follow(
        self,
        trait: Trait,
        func: Any,
        args: Any,
        kwargs: Any,
        grad_enabled: bool,
        stack: Stack,
        change: Change | None,
    ) -> Any:
        """Runs the operator and lets the shadow of its inputs fall on its outputs."""
        soiled: list[torch.Tensor] = []
        try:
            shade = self._look(trait, args, kwargs, grad_enabled, stack)
            if change is not None:
                soiled = self._unattributed(trait, args, kwargs, grad_enabled)
                for tensor in soiled[:1]:
                    change.remember(tensor)
        except Exception:
            self.ledger.problem(traceback.format_exc())
            shade = None
        result = self._run(trait, func, args, kwargs)
        if not trait.detaches:
            self.previous = trait.name
        if change is not None and soiled:
            self._soil_graph_values(trait, args, kwargs, soiled, stack, change)
        if shade is not None:
            try:
                self._cast(trait, shade, _tensors_in(result), grad_enabled, stack)
            except Exception:
                self.ledger.problem(traceback.format_exc())
        return result

    def _look(self, trait: Trait, args: Any, kwargs: Any, grad_enabled: bool, stack: Stack) -> Shade | None:
        """What the inputs bring with them; None when they bring nothing."""
        shadow = self.shadow
        assert shadow is not None
        inputs, numbers = self._inputs(args, kwargs)
        targets = list(written_tensors(trait, args, kwargs)) if trait.writes else []
        if targets and not grad_enabled and is_own_leaf(targets[0]):
            # An initialisation or a manual update of a parameter: its new value starts a new life.
            return None
        deps, events = numbers
        live: Mask = 0
        for tensor in inputs:
            more, reached, passed = shadow.read(tensor, trait.views)
            deps |= more
            live |= reached
            events |= passed
        if not trait.writes and not trait.detaches and trait.name != "aten::clone":
            shadow.met |= live
            if grad_enabled and stack and live & ~shadow.recorded:
                shadow.note_recorded(live & ~shadow.recorded, stack)
        return Shade(inputs, targets, numbers, deps, live, events) if deps and not trait.overwrites else None

    def _cast(
        self, trait: Trait, shade: Shade, outputs: list[torch.Tensor], grad_enabled: bool, stack: Stack
    ) -> None:
        """Lets what the inputs brought fall on the outputs, and notes where autograd lost the path."""
        shadow = self.shadow
        assert shadow is not None
        deps, live, events = shade.deps, shade.live, shade.events
        if not live:
            if trait.detaches:
                # Older releases detach what is detached already: the storage knows that, and its graph tensor is as it was.
                return
            for output in (*outputs, *shade.targets):
                shadow.write(output, deps, events, 0)
            return
        if trait.detaches:
            self._follow_detach(trait, shade, outputs, grad_enabled, stack)
            return
        if not grad_enabled:
            if _current_node() is None:
                events |= 1 << self._unrecorded(trait, live, stack).bit
            live = 0
        elif trait.adds:
            events |= self._dead_term(shade.inputs, outputs, shade.numbers, stack)
            if shadow.constant_gradients & events:
                events |= self._dead_part(shade.inputs, stack)
        elif trait.mixes and shadow.dead_parts:
            # What goes through another layer is an input, made with a gradient on purpose.
            events &= ~shadow.dead_parts
        for output in (*outputs, *shade.targets):
            if live and not (output.is_floating_point() or output.is_complex()):
                cut = shadow.event("non-diff", trait.name, stack, live)
                shadow.write(output, deps, events | 1 << cut.bit, 0)
            else:
                shadow.write(output, deps, events, live)

    def _inputs(self, args: Any, kwargs: Any) -> tuple[list[torch.Tensor], tuple[Mask, Mask]]:
        """The tensors of a call, and the origin of its numbers."""
        inputs: list[torch.Tensor] = []
        deps: Mask = 0
        events: Mask = 0
        for value in args:
            if isinstance(value, torch.Tensor):
                inputs.append(value)
            elif isinstance(value, (list, tuple)):
                inputs.extend(item for item in value if isinstance(item, torch.Tensor))
            elif type(value) is float and self.origins:
                more, passed = self.origins.of(value)
                deps |= more
                events |= passed & ~(self.shadow.dead_terms if self.shadow is not None else 0)
        if kwargs:
            inputs.extend(value for value in kwargs.values() if isinstance(value, torch.Tensor))
        return inputs, (deps, events)

    def _follow_detach(
        self, trait: Trait, shade: Shade, outputs: list[torch.Tensor], grad_enabled: bool, stack: Stack
    ) -> None:
        shadow = self.shadow
        assert shadow is not None
        kind = self.situation.alias_kind
        if kind == "ignore" or (kind == "detach" and self._saves_its_result()):
            return
        if not grad_enabled:
            cut = self._unrecorded(trait, shade.live, stack)
        else:
            cut = shadow.event(kind, trait.name, stack, shade.live)
        node = shade.inputs[0].grad_fn if shade.inputs else None
        if node is not None:
            cut.source_number = number_of(node)
        for output in outputs:
            shadow.write_alias(output, shade.deps, shade.events, 1 << cut.bit)

    def _saves_its_result(self) -> bool:
        """Whether the operator that is called keeps its own result for backward: torch detaches it for that."""
        called = getattr(self.situation.call, "__name__", "").strip("_")
        return bool(called) and self.previous.rpartition("::")[2].strip("_") == called

    def _unrecorded(self, trait: Trait, live: Mask, stack: Stack) -> Divergence:
        """The event of an operator that ran with grad mode off: by the user's choice, or inside a checkpoint."""
        shadow = self.shadow
        assert shadow is not None
        if self.situation.checkpoint:
            return shadow.event("checkpoint", "checkpoint", self.situation.checkpoint, live)
        return shadow.event("no_grad", trait.name, stack, live)

    def _unattributed(self, trait: Trait, args: Any, kwargs: Any, grad_enabled: bool) -> list[torch.Tensor]:
        """What is written of the values of the graph without autograd attributing the write to them."""
        shadow, situation = self.shadow, self.situation
        assert shadow is not None
        if situation.backwards_running or situation.custom_functions:
            return []
        return [
            tensor
            for tensor in written_tensors(trait, args, kwargs)
            if tensor.layout is torch.strided
            and not (grad_enabled and tensor.requires_grad)
            and shadow.is_tracked(tensor)
        ]

    @quietly
    def _soil_graph_values(
        self, trait: Trait, args: Any, kwargs: Any, targets: list[torch.Tensor], stack: Stack, change: Change
    ) -> None:
        """Notes the writes that autograd does not know, unless the gradient is right all the same."""
        shadow = self.shadow
        assert shadow is not None
        change.settle(targets[0])
        if change.kind in ("none", "sunk") or not self.situation.is_in_place(trait.name):
            return
        if change.kind == "shifted" and not self._depends_on_leaves(args, kwargs, targets):
            return
        for tensor in targets:
            if not shadow.is_graph_value(tensor):
                continue
            kind = "dirty-no-grad"
            if not tensor.requires_grad:
                kind = "dirty-data" if shadow.alias_kind(tensor) == "data" else "dirty-alias"
            shadow.soil(tensor, shadow.event(kind, trait.name, stack, 0))

    def _depends_on_leaves(self, args: Any, kwargs: Any, targets: list[torch.Tensor]) -> bool:
        """Whether leaves had a part in what a write is given besides the tensors it writes."""
        shadow = self.shadow
        assert shadow is not None
        inputs, (deps, _) = self._inputs(args, kwargs)
        for tensor in inputs:
            if all(tensor is not one for one in targets):
                deps |= shadow.read(tensor)[0]
        return deps != 0

    def _dead_term(
        self,
        inputs: list[torch.Tensor],
        outputs: list[torch.Tensor],
        numbers: tuple[Mask, Mask],
        stack: Stack,
    ) -> Mask:
        """A scalar that depends on leaves but carries no gradient, added to one that does."""
        shadow = self.shadow
        assert shadow is not None
        if not outputs or outputs[0].numel() != 1 or not any(item.requires_grad for item in inputs):
            return 0
        mask, inner = numbers
        for tensor in inputs:
            deps, live, events = shadow.read(tensor)
            if not tensor.requires_grad:
                mask |= deps
                inner |= events
            elif events and all(leaf.made_from for leaf in shadow.leaves_in(live)):
                copies = sum(1 << each.bit for each in shadow.events_in(events) if each.kind == "tensor")
                if copies:
                    # A leaf made of tensors of the graph: the term asks for a gradient and leads to nobody.
                    event = shadow.event("copied-term", "add", stack, deps & ~live)
                    event.inner |= copies
                    event.live |= live
                    return 1 << event.bit
        if inner & shadow.constant_gradients and self._is_step(inputs):
            inner &= ~shadow.constant_gradients
        if not inner:
            return 0
        event = shadow.event("dead-term", "add", stack, mask)
        shadow.dead_terms |= 1 << event.bit
        event.inner |= inner
        return 1 << event.bit

    def _dead_part(self, inputs: list[torch.Tensor], stack: Stack) -> Mask:
        """A gradient that is a constant for autograd, added to something alive."""
        shadow = self.shadow
        assert shadow is not None
        mask = inner = alive = 0
        for tensor in inputs:
            deps, live, events = shadow.read(tensor)
            if tensor.requires_grad:
                alive |= live
            elif events & shadow.constant_gradients:
                mask |= deps
                inner |= events & shadow.constant_gradients
        if not inner or not alive or self._is_step(inputs):
            return 0
        event = shadow.event("dead-part", "add", stack, mask)
        event.inner |= inner
        event.live |= alive
        shadow.dead_parts |= 1 << event.bit
        return 1 << event.bit

    def _is_step(self, inputs: list[torch.Tensor]) -> bool:
        """`w - rate * g` with the gradient by `w` is a step, not a term."""
        shadow = self.shadow
        assert shadow is not None
        sources = {key for each in shadow.events_in(shadow.constant_gradients) for key in each.sources}
        return any(tensor.requires_grad and storage_key(tensor) in sources for tensor in inputs)


def _copies_itself(trait: Trait, args: Any) -> bool:
    """A copy of a tensor onto itself changes nothing."""
    if trait.name != "aten::copy_" or len(args) < 2:
        return False
    source, target = args[1], args[0]
    key = storage_key(target)
    return bool(key) and key == storage_key(source) and geometry_of(target) == geometry_of(source)


def _tensors_in(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [item for item in result if isinstance(item, torch.Tensor)]
    return []
