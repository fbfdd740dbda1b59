"""The full set of instruments: cuts, aliases, the training loop, facts per line; each hears what it needs to hear."""

from __future__ import annotations

import builtins
import math
import sys
import weakref
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from gradsight.agent.aliases import Aliases
from gradsight.agent.api_hooks import ApiHooks
from gradsight.agent.applied_twice import TwiceApplied
from gradsight.agent.arrays import OutsideCalls
from gradsight.agent.backwards import Backwards
from gradsight.agent.blame import Blame, is_refused_write
from gradsight.agent.branch_inputs import BranchInputs
from gradsight.agent.changed_samples import ChangedSamples
from gradsight.agent.clipping import Clipping
from gradsight.agent.closures import judge_closure
from gradsight.agent.custom import ApplyWrapper
from gradsight.agent.dropped_hooks import DroppedHooks, rebinds_before
from gradsight.agent.dropped_results import judge_dropped_results
from gradsight.agent.faults import Fault, Ledger, quietly
from gradsight.agent.features import Features
from gradsight.agent.finished import FinishedBackwards
from gradsight.agent.gradwatch import GradWatch
from gradsight.agent.graph import Node, storage_key, untracked
from gradsight.agent.instruments import Instruments
from gradsight.agent.left_undone import judge_left_statistics, judge_unused_terms
from gradsight.agent.limits import RunLimits
from gradsight.agent.losses import fault_of_loss
from gradsight.agent.lost_gradients import LostGradients
from gradsight.agent.lost_updates import FutileUpdates
from gradsight.agent.model_copies import SECOND, ModelCopies
from gradsight.agent.naming import name_leaves
from gradsight.agent.numbers import follow_math
from gradsight.agent.origins import Origins
from gradsight.agent.overwritten_inputs import OverwrittenInputs
from gradsight.agent.parallel import overlook_synchronisation
from gradsight.agent.recorded_averages import AverageWatch
from gradsight.agent.recorder import DispatchRecorder
from gradsight.agent.repeated_rows import RepeatedRows
from gradsight.agent.retention import Retention
from gradsight.agent.shadow import Leaf, Shadow
from gradsight.agent.shared_state import judge_shared_state
from gradsight.agent.sites import Stack, capture, library_frames, place_of, text_of, user_frames
from gradsight.agent.snapshots import Snapshots
from gradsight.agent.threads import ThreadWatch
from gradsight.agent.touches import Touches
from gradsight.agent.train_modes import TrainModes
from gradsight.agent.training import TrainingWatch
from gradsight.agent.traits import Trait
from gradsight.agent.transforms import TransformWrappers
from gradsight.agent.undone_freezes import FreezesTakenBack
from gradsight.agent.unused_layers import UncalledLayers
from gradsight.agent.user_hooks import UserHooks
from gradsight.agent.vanished_gradients import VanishedGradients
from gradsight.agent.visits import (
    DROP,
    FLOAT,
    HOLD,
    KEEP,
    METHOD,
    NAMED,
    NOTE,
    OUTSIDE,
    SEEN,
    STORE,
    InstrumentingFinder,
    Visits,
    instrument,
)
from gradsight.agent.who_trains import WhoTrains, follow_copies

# Functions that measure how far apart their first two arguments are.
_COMPARISONS = (
    torch.Tensor.sub, torch.sub, torch.Tensor.__rsub__, torch.allclose, torch.equal, torch.dist,
    functional.mse_loss, functional.l1_loss, functional.smooth_l1_loss, functional.huber_loss,
    functional.pairwise_distance, functional.cosine_similarity,
)  # fmt: skip
# Functions whose second argument is what the first one should become.
_LOSSES = (
    functional.mse_loss, functional.l1_loss, functional.smooth_l1_loss, functional.huber_loss, functional.kl_div,
    functional.cosine_similarity, functional.cross_entropy, functional.binary_cross_entropy,
    functional.binary_cross_entropy_with_logits,
)  # fmt: skip
_LARGEST_ADOPTED = 2048


class Norm(NamedTuple):
    """The gradient of one leaf as last measured."""

    value: float

    @property
    def is_zero(self) -> bool:
        return self.value == 0.0


class FullInstruments(Instruments):
    """Everything the probe can see in one run."""

    def __init__(self, ledger: Ledger, governor: RunLimits, fake: bool = False) -> None:
        super().__init__(ledger, governor, whole_calls=False)
        self.fake = fake
        # Without FakeTensorMode the step would run on real memory.
        self.may_pause = not fake
        log, situation = self.log, self.situation
        self.origins = Origins()
        self.shadow = Shadow()
        self.grads = GradWatch(log, ledger)
        self.training = TrainingWatch(log, ledger, self.shadow, situation)
        self.recorder = DispatchRecorder(log, ledger, situation, self.shadow, self.origins)
        self.surface = ApiHooks(log, situation, self.shadow, self.origins, self.grads)
        self.backwards = Backwards(log, ledger, situation, self.shadow, self.training)
        self.visits = Visits(with_norms=not fake)
        self.snapshots = Snapshots(log, ledger)
        self.aliases = Aliases(log, ledger)
        self.regime = TrainModes(ledger, self.training)
        self.threads = ThreadWatch(ledger)
        self.who = WhoTrains(log, ledger, self.shadow, self.training)
        self.clipping = Clipping(ledger, self.shadow, self.training)
        self.applied = TwiceApplied(self.training)
        self.copies = ModelCopies(ledger)
        self.hooked = OverwrittenInputs(ledger, self.modules)
        self.lost = LostGradients(ledger, self.shadow, self.training)
        self.vanished = VanishedGradients(log, ledger, self.shadow, self.training)
        self.unused = UncalledLayers(ledger, self.shadow, self.training, self.modules)
        self.freezes = FreezesTakenBack(log, ledger)
        self.rows = RepeatedRows(ledger)
        self.samples = ChangedSamples(log, ledger, self.training)
        self.branches = BranchInputs(ledger)
        self.dropped = DroppedHooks(ledger)
        self.updates = FutileUpdates(ledger)
        self.retention = Retention(ledger, lambda: governor.steps or self.backwards.count)
        self.averages = AverageWatch(ledger, lambda: governor.steps or self.backwards.count)
        self.blame = Blame(log, self.shadow, self.surface, self.grads, self.backwards, self.modules)
        self._custom = ApplyWrapper(log, ledger, situation, judges=True)
        self._transforms = TransformWrappers(ledger, situation)
        self._user_hooks = UserHooks(log, ledger, situation)
        self.norms: dict[int, Norm] = {}
        self._asked: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        self.touches: Touches | None = None
        self._connect()

    def _connect(self) -> None:
        """Tells each instrument who wants to hear from it."""
        self.situation.grad_writes = self._written
        self.situation.gradient_edits = self._gradient_edited
        self.recorder.builder = self.modules.builder
        self.blame.bound_at = self.aliases.bound_at
        self.blame.was_visited = self.visits.was_seen
        self.blame.unwaited = lambda: self.threads.active
        self.shadow.adopt = self._adopt
        surface = self.surface
        surface.on_grad_set = lambda tensor, value: self.training.grad_assigned(tensor, value, capture(4))
        surface.on_collection = self.snapshots.collected
        surface.on_gradient_use = self.regime.gradient_used
        surface.on_gradient_read = self._gradient_read
        surface.on_shared = self.aliases.expose
        surface.aliases = self.aliases
        surface.branches = self.branches
        surface.on_flag = self.freezes.flagged
        surface.on_copy = self.modules.born
        surface.follows_library = lambda: self.regime.scaled
        for function in _COMPARISONS:
            surface.listen(function, self._compared)
        for function in _LOSSES:
            surface.listen(function, self._target_used)
        surface.listen(torch.Tensor.__setitem__, self._item_set)
        surface.listen(torch.Tensor.register_hook, self.lost.watched)
        surface.listen(torch.Tensor.register_hook, self.dropped.registered)
        surface.listen(torch.Tensor.retain_grad, self.lost.watched)
        surface.listen(torch.Tensor.copy_, self.updates.copied)
        surface.listen(
            functional.dropout,
            lambda args, kwargs: self._mode_used(_option(args, kwargs, 2, "training", True)),
        )
        surface.listen(
            functional.batch_norm,
            lambda args, kwargs: self._mode_used(_option(args, kwargs, 5, "training", False)),
        )
        self.snapshots.on_store = self._stored
        self.snapshots.on_call = self.aliases.called
        self.aliases.is_gradient = self.grads.is_gradient
        self.aliases.on_memory_written = self.shadow.soil_memory
        self.snapshots.held_since = self.aliases.held_since
        self.snapshots.names_of = self.aliases.names_of
        surface.has_trained = self.backwards.has_trained
        surface.on_error = self._refused
        surface.suspects = self.snapshots.suspects
        surface.on_suspect = self.snapshots.read
        self.backwards.on_gradients = self._gradients
        if not self.fake:
            self.backwards.on_graph = self.vanished.before
        self.backwards.stored_at = self.snapshots.stored_at
        self.training.on_frozen_move = lambda tensor, step: self.regime.moved_while_frozen(
            tensor, surface.frozen_at.get(id(tensor), ()), step
        )

    def install(self, features: Features) -> None:
        super().install(features)
        self._custom.install(self.patches)
        self._transforms.install()
        self._user_hooks.install()
        overlook_synchronisation(self.situation)
        self.threads.install()
        self.snapshots.install()
        self.clipping.install()
        self.hooked.install(self.patches)
        follow_copies(self.who)
        self.regime.install()
        self._follow_numpy()
        if not features.grad_mode_is_heard:
            self.surface.hear_grad_mode()
        follow_math(self.origins)
        self._follow_parameters()
        setattr(builtins, NOTE, self._note)
        setattr(builtins, STORE, self.snapshots.store)
        setattr(builtins, KEEP, self._keep)
        setattr(builtins, NAMED, self._named)
        setattr(builtins, HOLD, self._hold)
        setattr(builtins, DROP, self.snapshots.called)
        setattr(builtins, FLOAT, self.surface.traced_float)
        setattr(builtins, SECOND, self.copies.read)
        setattr(builtins, METHOD, self._method_set)
        setattr(builtins, SEEN, self.visits.seen.add)
        setattr(builtins, OUTSIDE, self._outside_calls())
        sys.meta_path.insert(0, InstrumentingFinder())

    def note_touches(self) -> None:
        """From here on it is written down which lines touch which memory."""
        self.touches = self.recorder.touches = self.log.touches = self.grads.touches = Touches()
        self.backwards.finished = FinishedBackwards(self.log)

    def books(self) -> dict[str, Any]:
        return {
            "training": self.training.as_json(),
            "touches": self.touches.as_json() if self.touches is not None else [],
            "touched_makers": self.touches.makers_as_json() if self.touches is not None else [],
            "finished": self.backwards.finished.as_json() if self.backwards.finished is not None else [],
        }

    def modes(self) -> tuple[Any, ...]:
        return (self.recorder, self.surface)

    def compile(self, source: Any, filename: str) -> CodeType:
        return instrument(source, filename)

    def facts(self) -> list[dict[str, Any]]:
        return self.visits.as_json()

    def visited(self) -> dict[str, list[int]]:
        return self.visits.lines()

    # What is heard.

    def _refused(self, error: Exception) -> None:
        """A function of the API raised: a write that torch refuses is a fault, whoever catches the error."""
        if is_refused_write(error):
            self.backwards.note_error(error, capture(3), in_backward=False)

    @quietly
    def _note(self, line: int, name: str, value: Any, changed: bool) -> None:
        """A statement of the user bound or changed this name."""
        if isinstance(value, torch.Tensor):
            with torch._C.DisableTorchFunction():
                key = (sys._getframe(2).f_code.co_filename, line, name)
                self.visits.note(key, value)
                stack = capture(2, 4) if changed else capture(2, 1)
                self.aliases.bind(name, value, stack, changed and not self.situation.custom_functions)
                if not changed:
                    self.updates.bound(name, value, stack)
                if value.numel() == 1:
                    self.training.unasked.bind(key, value, stack)
                    self.retention.bind(key, value, lambda: stack)
                elif value.requires_grad:
                    self.averages.bind(key, value, lambda: stack)
        elif isinstance(value, torch.nn.Module):
            if not changed:
                self.copies.bound(name, value, capture(2, 1))
        elif changed:
            if hasattr(value, "__array_interface__"):
                self.aliases.array_written(value, capture(2), is_done=True)
        elif type(value) in (list, tuple, dict):
            stack = capture(2)
            self.aliases.hold(name, value, stack)
            if not isinstance(value, dict) and len(value) > 1:
                self.snapshots.bound_list(value[0], value[-1], stack)

    def _keep(self, value: Any, target: str, is_entry: bool) -> Any:
        """Called by `self.table[key] = value` of the user's code; hands the value through."""
        if isinstance(value, torch.Tensor):
            with untracked():
                self._kept(value, target, is_entry)
        elif isinstance(value, torch.nn.Module):
            self.copies.bound(target, value, capture(2, 1))
        elif type(value) in (list, dict):
            self.aliases.hold(target, value, capture(2))
        return value

    @quietly
    def _kept(self, value: torch.Tensor, target: str, is_entry: bool) -> None:
        stack = capture(4)
        if not stack or value.is_inference():
            return
        self.snapshots.kept(value, stack, is_entry)
        self.hooked.stored(value, stack)
        key = (stack[0].code.co_filename, stack[0].offset, target)
        if value.numel() == 1:
            self.retention.bind(key, value, lambda: stack)
        elif value.requires_grad:
            self.averages.bind(key, value, lambda: stack)

    def _stored(self, value: torch.Tensor, stack: Stack) -> None:
        """A tensor was put into a list of the user's."""
        self.retention.store(value, stack)
        self.hooked.stored(value, stack)

    def _method_set(self, owner: Any, name: str) -> Any:
        """A statement of the user is about to set an attribute with the name of a method of tensors; hands the owner through."""
        if isinstance(owner, torch.Tensor) and not isinstance(vars(torch.Tensor).get(name), property):
            stack = capture(2)
            if stack:
                place = place_of(stack[0])
                message = f"this sets an attribute `{name}` on the tensor: the method `{name}` is not called, nothing is written"
                self.ledger.add(
                    Fault("attribute-typo", message, place, (), "warning", {"meant": f"{name}(…)"})
                )
        return owner

    def _hold(self, holder: Any, name: str, in_place: bool) -> Any:
        """A statement of the user is about to change an entry of this, or to replace it; hands it through."""
        if in_place and type(holder) in (list, dict):
            self.aliases.changed_entry(name, holder, capture(2))
        elif hasattr(holder, "__array_interface__") and not name.isidentifier():
            self.aliases.array_written(holder, capture(2))
        return holder

    def _named(self, value: Any) -> Any:
        """A statement of the user names a method and does not call it."""
        owner = getattr(value, "__self__", None)
        if getattr(value, "__name__", "") == "zero_grad" and owner is not None:
            self.training.uncalled(owner, capture(2))
        return value

    @quietly
    def _compared(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if len(args) > 1:
            self.aliases.compared(args[0], args[1], capture(4))

    @quietly
    def _target_used(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        target = args[1] if len(args) > 1 else kwargs.get("target", kwargs.get("x2"))
        if isinstance(target, torch.Tensor) and target.requires_grad and torch.is_grad_enabled():
            self.ledger.sight("target-not-constant", capture(4))

    @quietly
    def _item_set(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if len(args) > 2:
            self.snapshots.stored_in_tensor(args[2])
            if not self.fake:
                self.rows.set_item(*args[:3])
            self.aliases.stored_view(args[0], args[2], capture(4))

    def _written(self, tensor: torch.Tensor, trait: Trait, stack: Stack, node: str) -> None:
        """An operator is about to write to a tensor."""
        self.training.written(tensor, trait, stack, node)
        if not node and not self.fake:
            self.samples.written(tensor, trait, stack)
            self.branches.written(tensor, stack)

    @quietly
    def _mode_used(self, active: bool) -> None:
        for frame in library_frames():
            owner = frame.f_locals.get("self") if frame.f_code.co_name == "forward" else None
            if isinstance(owner, torch.nn.Module):
                self.regime.mode_dependent(owner, active)
                return

    @quietly
    def _gradient_edited(self, tensor: torch.Tensor, stack: Stack) -> None:
        """A hook or a backward of the user writes to the gradient it was given."""
        frame = next(user_frames(), None)
        if frame is None or (tensor.is_leaf and tensor.requires_grad):
            return
        key = storage_key(tensor)
        for name in frame.f_code.co_varnames[: frame.f_code.co_argcount]:
            given = frame.f_locals.get(name)
            if isinstance(given, torch.Tensor) and key and storage_key(given) == key:
                if rebinds_before(stack[0], name):
                    continue
                place = place_of(stack[0])
                message = f"`{text_of(place)}` edits the gradient it was given, which others may share"
                self.ledger.add(Fault("gradient-edited", message, place, (), "warning", {"argument": name}))

    @quietly
    def _gradient_read(self, owner: torch.Tensor) -> None:
        self.training.grad_read(owner)
        if self.threads.active:
            leaf = self.shadow.leaf(owner) if owner.requires_grad else None
            if leaf is not None:
                self.threads.read(leaf.bit)

    @quietly
    def _gradients(self, nodes: list[Node], numbers: frozenset[int]) -> None:
        """A backward has given gradients to the leaves it reaches."""
        reached = self.training.reaches[-1].reached
        leaves = self.shadow.leaves_in(reached)
        self.retention.backward(numbers)
        self.averages.backward(numbers)
        if self.threads.active:
            self.threads.backward([leaf.bit for leaf in leaves])
        self.modules.gained(leaves, self.training, self.shadow)
        self.who.backward(nodes, leaves)
        if not self.fake:
            self.vanished.after(nodes, self.training.reaches[-1])
        self.surface.backwards = self.backwards.count
        count = self.backwards.count
        if count <= 4:
            fault = fault_of_loss(nodes, self.log)
            if fault is not None:
                self.ledger.add(fault)
        # Norms are taken at the first backwards and then ever more rarely.
        if not self.fake and (count <= 2 or count & (count - 1) == 0):
            for leaf in leaves:
                self._measure(leaf)

    def _measure(self, leaf: Leaf) -> None:
        tensor = leaf.tensor()
        grad = tensor.grad if tensor is not None else None
        if grad is None or grad.layout is not torch.strided or grad.device.type == "meta":
            return
        self.norms[leaf.bit] = Norm(float(grad.detach().double().norm()))

    def optimizer_made(self, optimizer: Any, stack: Stack) -> None:
        self.training.optimizer_made(optimizer, stack)

    def step_begins(self, optimizer: Any, stack: Stack, has_closure: bool, is_library: bool) -> None:
        self.applied.step_begins(optimizer, stack, has_closure, is_library)
        self.training.before_step(optimizer, stack, has_closure)
        self.lost.before_step(optimizer)
        if is_library:
            self.training.note_versions(optimizer)

    def step_ends(self, optimizer: Any, stack: Stack) -> None:
        self.applied.step_ends()
        self.training.after_step(optimizer, stack)
        self.regime.stepped(optimizer)
        self.copies.stepped(optimizer, stack)
        record = self.training.optimizers.get(id(optimizer))
        if record is not None:
            self.who.stepped(record)
            if record.has_closure:
                judge_closure(self.training, record, optimizer)

    def _adopt(self, tensor: torch.Tensor) -> tuple[int, int]:
        """Values that left as numbers and came back in a tensor that nobody saw being made."""
        if (
            not self.origins
            or not tensor.is_floating_point()
            or self.fake
            or not 0 < tensor.numel() <= _LARGEST_ADOPTED
        ):
            return 0, 0
        if tensor.is_inference():
            return 0, 0
        version = tensor._version
        asked = self._asked.get(id(tensor))
        if asked is not None and asked[0]() is tensor and asked[1] == version:
            return 0, 0
        if len(self._asked) > 4096:
            self._asked.clear()
        self._asked[id(tensor)] = (weakref.ref(tensor), version)
        with untracked():
            try:
                values = tensor.reshape(-1).tolist()
            except (RuntimeError, TypeError):
                return 0, 0
        return self.origins.of(values)

    # Places that a mode does not reach.

    def _outside_calls(self) -> OutsideCalls:
        def written(array: Any) -> None:
            self.aliases.array_written(array, capture(3))

        return OutsideCalls(self.ledger, self.origins, self.surface.leaving, self.aliases.is_shared, written)

    def _follow_numpy(self) -> None:
        original = torch.from_numpy

        def from_numpy(array: Any) -> torch.Tensor:
            result = self.samples.lies_in(original(array), array)
            deps, events = self.origins.of(array)
            if deps:
                self.shadow.write(result, deps, events, 0)
            with torch._C.DisableTorchFunction():
                self.aliases.share(result)
            return result

        torch.from_numpy = from_numpy

    def _follow_parameters(self) -> None:
        original = torch.nn.Parameter.__new__

        def make(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
            made = original(cls, data, requires_grad)
            if requires_grad and isinstance(data, torch.Tensor):
                with untracked():
                    if data.grad_fn is not None:
                        self.surface.false_leaf(made, "parameter", capture(2))
            return made

        torch.nn.Parameter.__new__ = make
        variable: Any = torch.autograd.Variable
        build = type(variable).__call__

        def call(cls: Any, data: Any = None, requires_grad: bool = False, *more: Any) -> Any:
            made = build(cls, data, requires_grad, *more)
            if requires_grad:
                with untracked():
                    self.surface.false_leaf(made, "requires_grad", capture(2))
            return made

        type(variable).__call__ = call
        copy = torch.nn.Parameter.__deepcopy__

        def copy_over(parameter: Any, memo: Any) -> Any:
            self.situation.quiet += 1
            try:
                made = copy(parameter, memo)
            finally:
                self.situation.quiet -= 1
            self.modules.born(made, capture(2))
            self.who.copied.add(id(made))
            return made

        torch.nn.Parameter.__deepcopy__ = copy_over

    # The end.

    def finish(self) -> None:
        with untracked():
            name_leaves(self.shadow)
            if not self.fake:
                for leaf in self.shadow.leaves:
                    self._measure(leaf)
            self.grads.finish()
            self.retention.finish()
            self.averages.finish()
            self.modules.finish(self.training, self.shadow, self.ledger)
            self.regime.finish()
            judge_shared_state(self.log, self.shadow, self.training.loss_events, self.ledger)
            self.training.finish(self.grads.none_read_ids)
            ended_by_itself = not self.governor.stopped
            self.clipping.finish(ended_by_itself)
            self.who.finish(ended_by_itself)
            self.freezes.finish(self.training, self.shadow)
            self.vanished.finish()
            if ended_by_itself:
                self.unused.finish()
                judge_unused_terms(self.training, self.ledger)
                judge_dropped_results(self.training, self.shadow, self.ledger)
            if not self.fake:
                judge_left_statistics(self.log, self.ledger)

    def parameters(self) -> list[dict[str, Any]]:
        rows = []
        managed = self.training.managed
        seen = managed | self.training.ever_reached | self.training.ever_missing
        for leaf in self.shadow.leaves:
            if not seen >> leaf.bit & 1 or not (leaf.is_parameter or leaf.name or managed >> leaf.bit & 1):
                continue
            if leaf.tensor() is None and not self.training.gained(leaf):
                continue
            norm = self.norms.get(leaf.bit)
            state = "none"
            if self.training.gained(leaf):
                state = "zero" if norm is not None and norm.is_zero else "ok"
            shown: float | None = norm.value if norm is not None and state != "none" else None
            rows.append(
                {
                    "name": leaf.name or f"leaf{list(leaf.shape)}",
                    "shape": list(leaf.shape),
                    "grad": state,
                    "norm": shown if shown is not None and math.isfinite(shown) else None,
                    "in_optimizer": bool(managed >> leaf.bit & 1),
                }
            )
        return rows


def _option(args: tuple[Any, ...], kwargs: dict[str, Any], index: int, name: str, default: bool) -> bool:
    return bool(kwargs.get(name, args[index] if len(args) > index else default))
