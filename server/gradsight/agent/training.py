"""The training loop as it ran: gradients gained, cleared and consumed, per leaf and per optimizer.

A backward *gains* gradient for the leaves it reaches; a *clear* drops or zeroes it; an optimizer step *consumes* it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch.nn.parameter import is_lazy

from gradsight.agent.cuts import FAULT_OF_CUT, UNINTENDED, BackwardReach, cut_fault, cutting_events, label
from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.gains import Gains
from gradsight.agent.graph import geometry_of, is_own_leaf, is_zero, storage_key
from gradsight.agent.naming import name_leaves
from gradsight.agent.oplog import LoggedWrite, OpLog
from gradsight.agent.recorder import Situation
from gradsight.agent.shadow import Leaf, Mask, Shadow
from gradsight.agent.sites import Stack, place_of, same_line, text_of
from gradsight.agent.traits import Trait
from gradsight.agent.unasked import Unasked

_KEPT_REACHES = 400


@dataclass
class OptimizerRecord:
    """What is known about one optimizer."""

    reference: weakref.ref[Any]
    made: Stack
    made_clock: int
    leaves: dict[int, Leaf] = field(default_factory=dict)
    mask: Mask = 0
    ever: Mask = 0
    steps: int = 0
    useful_steps: int = 0
    seen_backward: int = 0
    last_step: Stack = ()
    versions: list[tuple[torch.Tensor, int]] = field(default_factory=list)
    last_drops: int = 0
    has_closure: bool = False
    closure_calls: int = 0
    backwards_before: int = 0


@dataclass(frozen=True)
class StepRecord:
    """One optimizer step: whose, and after how many backwards."""

    optimizer: int
    backwards: int
    mask: Mask
    stack: Stack


class GradientListener(Protocol):
    """Who wants to know what becomes of gradients."""

    def cleared(self, bit: int) -> None: ...
    def filled(self, reached: Mask, stack: Stack) -> None: ...
    def stepped(self, mask: Mask) -> None: ...
    def gradient_written(self, bit: int, name: str, stack: Stack) -> None: ...


class TrainingWatch:
    """Keeps the books of the loop and speaks when they do not add up."""

    def __init__(self, log: OpLog, ledger: Ledger, shadow: Shadow, situation: Situation) -> None:
        self.log = log
        self.ledger = ledger
        self.shadow = shadow
        self.situation = situation
        self.reaches: list[BackwardReach] = []
        self.backwards = 0
        self.gains: dict[int, Gains] = {}
        self.optimizers: dict[int, OptimizerRecord] = {}
        self.steps: list[StepRecord] = []
        self.ever_missing: Mask = 0
        self.ever_reached: Mask = 0
        self.saw_cut = False
        self.loss_events: Mask = 0
        self._looked_at: Mask = 0
        self._grad_owner: dict[int, int] = {}
        # Cuts that somebody wrote down as cuts: a fault only when the leaves do not train later either.
        self._suspected: dict[int, list[tuple[Fault, Mask, int]]] = {}
        self.unasked = Unasked(shadow)
        self.listeners: list[GradientListener] = []
        self._uncalled: dict[int, tuple[Any, Stack]] = {}
        self.on_frozen_move: Callable[[torch.Tensor, Stack], None] | None = None

    @quietly
    def backward_done(self, reach: BackwardReach, accumulates: bool) -> None:
        """A backward came through."""
        self.reaches.append(reach)
        del self.reaches[:-_KEPT_REACHES]
        self.ever_missing |= reach.missing
        self.loss_events |= reach.events
        for event in self.shadow.events_in(reach.events) if reach.events else ():
            if event.kind in FAULT_OF_CUT:
                self.saw_cut = True
                self.ledger.sight(FAULT_OF_CUT[event.kind], event.stack)
        self.ever_reached |= reach.reached
        if not accumulates:
            return
        for listener in self.listeners:
            listener.filled(reach.reached, reach.stack)
        for leaf in self.shadow.leaves_in(reach.reached):
            gains = self.gains.setdefault(leaf.bit, Gains())
            gains.ever += 1
            gains.last = reach.index
            if len(gains.since_clear) > 64:
                del gains.since_clear[1:-8]
            gains.since_clear.append(reach.index)
            tensor = leaf.tensor()
            grad = tensor.grad if tensor is not None else None
            if grad is not None and grad.layout is torch.strided:
                self._grad_owner[storage_key(grad)] = leaf.bit

    @quietly
    def grad_assigned(self, tensor: torch.Tensor, value: Any, stack: Stack) -> None:
        """`tensor.grad = value`: None and zeros clear it."""
        leaf = self.shadow.known_leaf(tensor)
        if leaf is None:
            return
        if not is_zero(value):
            self.gains.setdefault(leaf.bit, Gains()).replaced(self.backwards)
            return
        self._clear(leaf.bit, stack)
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            # `p.grad = zeros`, and then `p.grad += q.grad`.
            self._grad_owner[storage_key(value)] = leaf.bit

    @quietly
    def written(self, tensor: torch.Tensor, trait: Trait, stack: Stack, node: str) -> None:
        """Somebody wrote to a storage: a gradient may have been cleared, a leaf updated by hand."""
        if not self._grad_owner or node:
            return
        if is_own_leaf(tensor) and not trait.overwrites:
            self._updated_by_hand(tensor, stack)
            return
        bit = self._grad_owner.get(storage_key(tensor))
        if bit is not None and self._has_gradient_in(bit, tensor):
            for listener in self.listeners:
                listener.gradient_written(bit, trait.name, stack)
        if bit is not None and (trait.overwrites or trait.name in ("aten::copy_", "aten::_foreach_zero_")):
            # `w.grad[:4] = 0` edits a gradient; only a write to all of it clears it.
            owner = self.shadow.leaves[bit].tensor()
            if owner is not None and tensor.numel() == owner.numel():
                gains = self.gains.setdefault(bit, Gains())
                gains.replaced(self.backwards) if trait.name == "aten::copy_" else self._clear(bit, stack)
        elif bit is not None and self._has_gradient_in(bit, tensor):
            known = self.gains.get(bit)
            if known is not None and not known.since_clear and not is_zero(tensor):
                known.replaced(self.backwards)

    def _has_gradient_in(self, bit: int, tensor: torch.Tensor) -> bool:
        """Whether this memory is still that of the gradient: freed memory is used again."""
        owner = self.shadow.leaves[bit].tensor()
        return owner is not None and owner.grad is not None and storage_key(owner.grad) == storage_key(tensor)

    def _updated_by_hand(self, tensor: torch.Tensor, stack: Stack) -> None:
        """`w -= lr * w.grad` without an optimizer."""
        leaf = self.shadow.known_leaf(tensor)
        gains = self.gains.get(leaf.bit) if leaf is not None else None
        if leaf is None or gains is None or self.managed >> leaf.bit & 1:
            return
        if not gains.since_clear:
            if gains.dropped > gains.consumed and gains.dropped_at:
                self._report_dropped([gains], stack)
                gains.consumed = gains.dropped
            return
        self._judge_repeated(gains, leaf, stack)
        gains.consumed = gains.since_clear[-1]

    def _clear(self, bit: int, stack: Stack) -> None:
        gains = self.gains.setdefault(bit, Gains())
        if gains.since_clear and gains.since_clear[-1] > gains.consumed:
            gains.dropped_at = stack
            gains.dropped = gains.since_clear[-1]
            gains.drops += gains.read < gains.dropped
        gains.since_clear = []
        for listener in self.listeners:
            listener.cleared(bit)

    @quietly
    def grad_read(self, tensor: torch.Tensor) -> None:
        """The program takes the gradient of this leaf: whatever becomes of the leaf's own, it is not lost."""
        leaf = self.shadow.known_leaf(tensor)
        gains = self.gains.get(leaf.bit) if leaf is not None else None
        if leaf is not None and gains is not None and gains.since_clear:
            gains.read = gains.since_clear[-1]
            self._looked_at |= 1 << leaf.bit

    @quietly
    def uncalled(self, owner: Any, stack: Stack) -> None:
        """A statement names `zero_grad` and does not call it."""
        if isinstance(owner, (torch.nn.Module, torch.optim.Optimizer)) and stack:
            self._uncalled[id(owner)] = (owner, stack)

    def _left_uncalled(self, leaf: Leaf) -> Stack:
        """The statement that names the `zero_grad` of whoever has this leaf."""
        for owner, stack in self._uncalled.values():
            if isinstance(owner, torch.nn.Module):
                own = list(owner.parameters())
            else:
                own = [each for group in owner.param_groups for each in group["params"]]
            if any(each is leaf.tensor() for each in own):
                return stack
        return ()

    @quietly
    def optimizer_made(self, optimizer: Any, stack: Stack) -> None:
        """An optimizer got parameters."""
        record = self.optimizers.get(id(optimizer))
        if record is None or record.reference() is not optimizer:
            record = OptimizerRecord(weakref.ref(optimizer), stack, self.log.clock)
            self.optimizers[id(optimizer)] = record
        self._refresh(optimizer, record)
        name_leaves(self.shadow)

    def _refresh(self, optimizer: Any, record: OptimizerRecord) -> None:
        record.mask = 0
        record.leaves = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                # A lazy parameter has neither shape nor memory before the first forward.
                if not isinstance(parameter, torch.Tensor) or is_lazy(parameter):
                    continue
                if parameter.requires_grad and parameter.is_leaf:
                    leaf = self.shadow.leaf(parameter)
                    if leaf is not None:
                        record.leaves[leaf.bit] = leaf
                        record.mask |= 1 << leaf.bit
        record.ever |= record.mask

    @quietly
    def before_step(self, optimizer: Any, stack: Stack, has_closure: bool) -> None:
        """`optimizer.step()` is about to run."""
        record = self.optimizers.get(id(optimizer))
        if record is None or record.reference() is not optimizer:
            self.optimizer_made(optimizer, ())
            record = self.optimizers[id(optimizer)]
        self._refresh(optimizer, record)
        record.last_step = stack
        record.has_closure = has_closure
        record.backwards_before = self.backwards
        record.versions = []
        if not has_closure:
            self._judge_step(record, stack)

    @quietly
    def note_versions(self, optimizer: Any) -> None:
        """Remembers the versions of the parameters a library step is going to write."""
        record = self.optimizers[id(optimizer)]
        record.versions = [
            (parameter, parameter._version)
            for group in optimizer.param_groups
            for parameter in group["params"]
            if isinstance(parameter, torch.Tensor) and parameter.grad is not None
        ]

    @quietly
    def after_step(self, optimizer: Any, stack: Stack) -> None:
        """`optimizer.step()` came through."""
        record = self.optimizers[id(optimizer)]
        record.steps += 1
        record.seen_backward = self.backwards
        self.log.clock += 1
        name = f"{type(optimizer).__name__}.step"
        for parameter, version in record.versions:
            if (
                not parameter.requires_grad
                and parameter._version != version
                and self.on_frozen_move is not None
            ):
                self.on_frozen_move(parameter, stack)
            if parameter.layout is torch.strided:
                self.log.note_write(
                    parameter,
                    LoggedWrite(
                        self.log.clock,
                        name,
                        stack,
                        version,
                        geometry_of(parameter),
                        "",
                        True,
                        by_optimizer=True,
                    ),
                )
        record.versions = []
        useful = False
        self._judge_lost_batches(record)
        for bit in record.leaves:
            gains = self.gains.get(bit)
            if gains is not None and gains.since_clear:
                useful = True
                gains.consumed = gains.since_clear[-1]
            if gains is not None:
                gains.drops = 0
        record.useful_steps += useful
        for listener in self.listeners:
            listener.stepped(record.mask)
        self.steps.append(StepRecord(id(optimizer), self.backwards, record.mask, stack))
        del self.steps[:-_KEPT_REACHES]

    def _judge_lost_batches(self, record: OptimizerRecord) -> None:
        """Gradients meant to add up over several batches, and cleared before each: every step loses as many."""
        gains = next((self.gains[bit] for bit in record.leaves if bit in self.gains), None)
        if gains is None or record.has_closure:
            return
        lost, dropped = self.reach(gains.dropped), gains.drops
        used = self.reach(gains.since_clear[-1]) if gains.since_clear else None
        if dropped and dropped == record.last_drops and lost is not None and used is not None:
            # A helper that serves two losses is one line; what was dropped is the same only if it came as far.
            if same_line(lost.stack, used.stack) and lost.reached == used.reached and gains.dropped_at:
                place = place_of(gains.dropped_at[0])
                message = f"`{text_of(place)}` clears the gradients of {dropped} backwards before every step: only the last counts"
                steps = step_at("needed", "these gradients are lost", lost.stack)
                self.ledger.add(
                    Fault("cleared-before-step", message, place, steps, "warning", {"lost_per_step": dropped})
                )
        record.last_drops = dropped

    def _judge_step(self, record: OptimizerRecord, stack: Stack) -> None:
        starved: Mask = 0
        fed = False
        for bit in record.leaves:
            gains = self.gains.get(bit)
            if gains is None or not gains.since_clear:
                starved |= 1 << bit
            else:
                fed = True
        if starved:
            self._judge_cuts(record, starved)
            if fed:
                self._judge_zeroed(record, stack)
        if not fed:
            self._judge_dropped(record, stack)
        else:
            self._judge_accumulation(record, stack)

    def _judge_zeroed(self, record: OptimizerRecord, stack: Stack) -> None:
        """Gradients set to zero to hold parameters still: momentum and weight decay move them all the same."""
        optimizer = record.reference()
        if optimizer is None or not any(
            group.get("weight_decay") or group.get("momentum") or group.get("betas")
            for group in optimizer.param_groups
        ):
            return
        for bit, leaf in record.leaves.items():
            gains = self.gains.get(bit)
            tensor = leaf.tensor()
            if (
                gains is None
                or gains.since_clear
                or gains.dropped <= record.seen_backward
                or not gains.dropped_at
            ):
                continue
            if tensor is not None and tensor.grad is not None:
                place = place_of(gains.dropped_at[0])
                message = f"`{text_of(place)}` zeroes the gradient of `{label(leaf)}`, and its optimizer still moves it"
                steps = step_at("needed", "weight decay or momentum moves it here", stack)
                self.ledger.add(
                    Fault("frozen-still-moves", message, place, steps, "warning", {"parameter": label(leaf)})
                )

    def _judge_cuts(self, record: OptimizerRecord, starved: Mask) -> None:
        """Parameters that this step leaves where they are, though the loss was computed from them."""
        for reach in self.reaches:
            missing = reach.missing & starved
            if reach.index > record.seen_backward and missing:
                name_leaves(self.shadow)
                for event, mask in cutting_events(self.shadow, missing, reach.events):
                    leaves = self.shadow.leaves_in(mask)
                    fault = cut_fault(event, leaves, reach.stack, self.shadow)
                    if event.kind in UNINTENDED:
                        self.ledger.add(fault)
                    else:
                        self._suspected.setdefault(event.bit, []).append((fault, mask, reach.index))

    def _judge_dropped(self, record: OptimizerRecord, stack: Stack) -> None:
        dropped = [
            gains
            for bit in record.leaves
            if (gains := self.gains.get(bit)) is not None
            and gains.dropped > record.seen_backward
            and gains.dropped_at
        ]
        if dropped:
            self._report_dropped(dropped, stack)

    def _report_dropped(self, dropped: list[Gains], stack: Stack) -> None:
        place = place_of(dropped[0].dropped_at[0])
        backward = self.reach(dropped[0].dropped)
        message = f"`{text_of(place)}` clears the gradients after backward and before `{_text(stack)}`: the step changes nothing"
        steps = (
            *(
                step_at("needed", "the gradients are computed here", backward.stack)
                if backward is not None
                else ()
            ),
            *step_at("read", "the step finds no gradient", stack),
        )
        self.ledger.add(
            Fault("cleared-before-step", message, place, steps, "warning", {"parameters": len(dropped)})
        )

    def _judge_accumulation(self, record: OptimizerRecord, stack: Stack) -> None:
        for bit, leaf in record.leaves.items():
            gains, tensor = self.gains.get(bit), leaf.tensor()
            if gains is None or len(gains.since_clear) < 2 or tensor is None or tensor.grad is None:
                continue  # A custom Function may give nothing to what a backward goes to.
            if self._judge_repeated(gains, leaf, stack):
                return
            reach = self.reach(gains.since_clear[-1])
            if reach is not None and reach.stack and self._judge_leftover(record, gains, leaf, reach, stack):
                return

    def _judge_repeated(self, gains: Gains, leaf: Leaf, stack: Stack) -> bool:
        """Gradients that a step has used are in the gradient of the next step again."""
        first, last = gains.since_clear[0], gains.since_clear[-1]
        reach = self.reach(last)
        if reach is None or not reach.stack or not first <= gains.consumed < last:
            return False
        place = place_of(reach.stack[0])
        message = (
            f"`{text_of(place)}` adds to gradients that `{_text(stack)}` has already used: "
            f"nothing clears `{label(leaf)}.grad` between the steps"
        )
        steps = step_at("read", "the step uses old and new gradients together", stack)
        uncalled = self._left_uncalled(leaf) if self._uncalled else ()
        if uncalled:
            place = place_of(uncalled[0])
            message = f"`{text_of(place)}` is named and not called: nothing clears `{label(leaf)}.grad` between the steps"
            steps = (*step_at("needed", "this backward adds to gradients already used", reach.stack), *steps)
        evidence = {"backwards_in_grad": len(gains.since_clear)}
        self.ledger.add(Fault("gradients-never-cleared", message, place, steps, "warning", evidence))
        return True

    def _judge_leftover(
        self, record: OptimizerRecord, gains: Gains, leaf: Leaf, reach: BackwardReach, stack: Stack
    ) -> bool:
        """Another network's backward left gradient here, its optimizer stepped, and nobody cleared ours."""
        for index in gains.since_clear[:-1]:
            earlier = self.reach(index)
            if earlier is None or not earlier.stack or same_line(earlier.stack, reach.stack):
                continue
            for step in self.steps:
                other = self.optimizers.get(step.optimizer)
                if other is None or other is record or other.mask & 1 << leaf.bit:
                    continue
                if index <= step.backwards < reach.index and index > record.seen_backward:
                    place = place_of(earlier.stack[0])
                    message = (
                        f"`{text_of(place)}` leaves gradient in `{label(leaf)}`, and `{_text(stack)}` uses it: "
                        "nothing clears it before the next backward"
                    )
                    steps = (
                        *step_at("needed", "this backward adds to what was left", reach.stack),
                        *step_at("read", "the step uses both", stack),
                    )
                    return self.ledger.add(Fault("foreign-gradients", message, place, steps, "warning", {}))
        return False

    def reach(self, index: int) -> BackwardReach | None:
        """The backward with this number."""
        for reach in reversed(self.reaches):
            if reach.index == index:
                return reach
        return None

    @quietly
    def finish(self, grads_read_as_none: set[int]) -> None:
        """What can only be said when the program is over."""
        for suspicions in self._suspected.values():
            _, mask, index = suspicions[-1]
            if not any(self._gained_after(leaf, index) for leaf in self.shadow.leaves_in(mask)):
                self.ledger.add(self._without_backward(mask) or suspicions[0][0])
        if self.optimizers:
            self._judge_idle_optimizers()
            return
        self._judge_cuts_without_optimizer(grads_read_as_none)

    def _without_backward(self, mask: Mask) -> Fault | None:
        """A step that finds no gradient because nobody called backward on the loss of these leaves."""
        scalar = self.unasked.for_leaves(mask)
        record = next(
            (each for each in self.optimizers.values() if any(mask >> bit & 1 for bit in each.leaves)), None
        )
        if scalar is None or record is None or not record.last_step or record.useful_steps:
            return None
        place = place_of(record.last_step[0])
        message = f"`{text_of(place)}` finds no gradient: `backward()` is never called on `{scalar.name}`"
        steps = step_at("made", "the loss that its parameters are waiting for", scalar.stack)
        return Fault("step-without-backward", message, place, steps, "warning", {"steps": record.steps})

    def _gained_after(self, leaf: Leaf, index: int) -> bool:
        gains = self.gains.get(leaf.bit)
        return gains is not None and gains.last > index

    def _judge_idle_optimizers(self) -> None:
        for record in self.optimizers.values():
            if not record.steps or record.useful_steps or not record.last_step or not record.leaves:
                continue
            if any(fault.severity != "info" for fault in self.ledger.faults):
                continue
            place = place_of(record.last_step[0])
            message = f"`{text_of(place)}` never finds a gradient: no backward reached its parameters"
            steps = step_at("made", "the optimizer", record.made)
            self.ledger.add(
                Fault("step-without-backward", message, place, steps, "warning", {"steps": record.steps})
            )

    def _judge_cuts_without_optimizer(self, grads_read_as_none: set[int]) -> None:
        """Nobody steps here, so a missing gradient is a fault when it was looked for or cut by accident."""
        starved = self.ever_missing & ~self.ever_reached
        wanted = 0
        for leaf in self.shadow.leaves_in(starved):
            tensor = leaf.tensor()
            if tensor is not None and id(tensor) in grads_read_as_none:
                wanted |= 1 << leaf.bit
        for reach in self.reaches:
            missing = reach.missing & starved
            if not missing:
                continue
            for event, mask in cutting_events(self.shadow, missing, reach.events):
                # A new leaf whose own gradient the program looks at was made for that.
                is_meant = event.kind not in UNINTENDED or bool(event.live & self._looked_at)
                chosen = mask & wanted if is_meant else mask
                if chosen:
                    leaves = self.shadow.leaves_in(chosen)
                    self.ledger.add(cut_fault(event, leaves, reach.stack, self.shadow))

    @property
    def managed(self) -> Mask:
        """The leaves of all optimizers."""
        mask = 0
        for record in self.optimizers.values():
            mask |= record.mask
        return mask

    @property
    def trained(self) -> Mask:
        """The leaves somebody trains: those of the optimizers, or all when there is none."""
        return self.managed if self.optimizers else (1 << len(self.shadow.leaves)) - 1

    def trained_by(self, reach: BackwardReach) -> Mask:
        """The leaves this backward is to train: by hand, one that an earlier backward reached may have been replaced."""
        return self.managed if self.optimizers else self.trained & (reach.reached | ~self.ever_reached)

    def stepped_after(self, leaf: Leaf) -> bool:
        """Whether an optimizer stepped after this leaf got a gradient."""
        gains = self.gains.get(leaf.bit)
        return gains is not None and any(step.backwards >= gains.last for step in self.steps)

    def step_after(self, index: int) -> Stack:
        """The step that came next after a backward."""
        return next((step.stack for step in self.steps if step.backwards >= index), ())

    def last_step_of(self, mask: Mask) -> Stack:
        """The latest step that moved one of these leaves."""
        return next((step.stack for step in reversed(self.steps) if step.mask & mask), ())

    def last_reach(self, leaf: Leaf) -> BackwardReach | None:
        """The latest backward that gave this leaf a gradient."""
        gains = self.gains.get(leaf.bit)
        return self.reach(gains.last) if gains is not None else None

    def as_json(self) -> dict[str, Any]:
        """The books in short: the steps of every optimizer, and whether a loss was computed from what had been cut."""
        return {
            "optimizers": [[record.steps, record.useful_steps] for record in self.optimizers.values()],
            "cuts_in_loss": self.saw_cut,
        }

    def gained(self, leaf: Leaf) -> bool:
        """Whether any backward gave this leaf a gradient."""
        gains = self.gains.get(leaf.bit)
        return gains is not None and gains.ever > 0


def _text(stack: Stack) -> str:
    return text_of(place_of(stack[0])) if stack else "step"
