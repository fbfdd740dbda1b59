"""Who is trained: parameters that backward reaches and no optimizer moves, told when the run is over.

*Left out*: a parameter got gradients, no optimizer ever held it, nobody wrote to it and nobody read its gradient.  That is
a mistake where its own module is trained in part, where what is trained computes with its output, where an optimizer
that steps has nothing of its own to apply, or where a fresh layer computes with the output of layers that are trained.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from gradsight.agent.cuts import label, name_list
from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.graph import Node, leaf_of
from gradsight.agent.naming import reachable_modules
from gradsight.agent.numbering import number_of
from gradsight.agent.oplog import OpLog
from gradsight.agent.shadow import Leaf, Mask, Shadow
from gradsight.agent.sites import Stack, place_of, text_of
from gradsight.agent.training import OptimizerRecord, TrainingWatch

_TELLING = frozenset(
    (
        "parameters-replaced",
        "not-registered",
        "layer-made-in-forward",
        "before-super-init",
        "parameter-refused",
    )
)
# Writes that make a parameter: what they leave is as good as fresh.
_INITIALISING = frozenset(
    ("uniform_", "normal_", "zero_", "fill_", "trunc_normal_", "ones_", "clamp_", "erfinv_", "mul_", "add_")
)
_VIEWS = ("TBackward", "TransposeBackward", "PermuteBackward", "ViewBackward", "ToCopyBackward")
_DRAWING = frozenset(("uniform_", "normal_", "trunc_normal_"))
_LOOKED_AT = 3
_FEWEST_STEPS = 2
_MOST_ALIVE = 500


class WhoTrains:
    """Compares what backwards reach with what optimizers hold."""

    def __init__(self, log: OpLog, ledger: Ledger, shadow: Shadow, training: TrainingWatch) -> None:
        self.log = log
        self.ledger = ledger
        self.shadow = shadow
        self.training = training
        self.copied: set[int] = set()
        """Identities of parameters that were copied from others, or loaded."""
        self._behind: dict[int, Mask] = {}
        """Per leaf of no optimizer: the leaves of optimizers that compute with what it gave."""
        self._before: dict[int, Mask] = {}
        """Per leaf of no optimizer: the leaves of optimizers whose output it computes with."""
        self._evaluated: Mask = 0
        self._copies: Mask = 0
        self._partly: dict[int, Mask] = {}
        """Per leaf of no optimizer: the leaves of optimizers in one module with it."""
        self._alive: dict[int, torch.Tensor] = {}
        """Leaves of no optimizer: a function that trained may be over, and its parameters gone, when the run ends."""
        self._first: dict[int, int] = {}
        """When a leaf of no optimizer got its first gradient."""
        self._seen = 0

    @quietly
    def backward(self, nodes: list[Node], reached: list[Leaf]) -> None:
        """A backward came through."""
        managed = self.training.managed
        free = [leaf for leaf in reached if leaf.is_parameter and not managed >> leaf.bit & 1]
        for leaf in free:
            self._first.setdefault(leaf.bit, self.log.clock)
            tensor = leaf.tensor()
            if tensor is not None and len(self._alive) < _MOST_ALIVE:
                self._alive[leaf.bit] = tensor
        if not managed or not free or self._seen >= _LOOKED_AT:
            return
        self._seen += 1
        self._note_modes(free)
        wanted = 0
        for leaf in free:
            wanted |= 1 << leaf.bit
        below: dict[Node, Mask] = {}
        trained: dict[Node, Mask] = {}
        for node in sorted(nodes, key=number_of):
            mine: Mask = 0
            held: Mask = 0
            direct: Mask = 0
            earlier: Mask = 0
            for successor, _ in node.next_functions:
                if successor is None:
                    continue
                bit = self._bit_of(successor)
                if bit is None:
                    mine |= below.get(successor, 0)
                    earlier |= trained.get(successor, 0)
                elif managed >> bit & 1:
                    held |= 1 << bit
                else:
                    direct |= 1 << bit
            mine |= direct
            below[node], trained[node] = mine, earlier | held
            for leaf in self.shadow.leaves_in(direct & wanted) if earlier else ():
                self._before[leaf.bit] = self._before.get(leaf.bit, 0) | earlier
            for leaf in self.shadow.leaves_in(mine & wanted) if held else ():
                self._behind[leaf.bit] = self._behind.get(leaf.bit, 0) | held

    def _bit_of(self, node: Node) -> int | None:
        """The leaf that an edge leads to, if only a view lies between."""
        for _ in range(3):
            tensor = leaf_of(node)
            if tensor is not None:
                leaf = self.shadow.known_leaf(tensor)
                return leaf.bit if leaf is not None else None
            if not node.name().startswith(_VIEWS) or len(node.next_functions) != 1:
                return None
            successor = node.next_functions[0][0]
            if successor is None:
                return None
            node = successor
        return None

    def _note_modes(self, leaves: Iterable[Leaf]) -> None:
        """Parameters of modules in eval mode are there to be used."""
        wanted = {id(leaf.tensor()): leaf.bit for leaf in leaves}
        for module in reachable_modules():
            for part in module.modules():
                if not part.training:
                    for parameter in part.parameters(recurse=False):
                        if id(parameter) in wanted:
                            self._evaluated |= 1 << wanted[id(parameter)]

    @quietly
    def stepped(self, record: OptimizerRecord) -> None:
        """An optimizer has stepped: who shares a module with whom can be seen now, in the variables of the program."""
        if record.steps & (record.steps - 1) or record.steps > 4:
            return
        for leaf in record.leaves.values():
            if self._is_copy(leaf):
                self._copies |= 1 << leaf.bit
        free = {id(tensor): bit for bit, tensor in self._alive.items() if not record.ever >> bit & 1}
        for module in reachable_modules() if free else ():
            own = [each for each in module.parameters() if not is_lazy(each)]
            mine = [free[id(each)] for each in own if id(each) in free]
            if mine:
                known = (self.shadow.known_leaf(each) for each in own)
                held = 0
                for each in known:
                    held |= 1 << each.bit & record.ever if each is not None else 0
                for bit in mine:
                    self._partly[bit] = self._partly.get(bit, 0) | held

    @quietly
    def finish(self, ended_by_itself: bool) -> None:
        """Says whom the optimizers leave out."""
        records = list(self.training.optimizers.values())
        stepped = [record for record in records if record.steps and record.made and not record.has_closure]
        if any(fault.kind in _TELLING for fault in self.ledger.faults):
            return
        # A program that failed had no time for the steps that were still to come.
        ended_by_itself = ended_by_itself and all(fault.severity != "error" for fault in self.ledger.faults)
        if not stepped:
            if ended_by_itself and not any(record.steps for record in records):
                self._judge_no_step(records)
            return
        held = 0
        for record in records:
            held |= record.ever
        left = [leaf for leaf in self.shadow.leaves if not held >> leaf.bit & 1 and self._is_forgotten(leaf)]
        if left:
            self._judge(left, stepped)
        if ended_by_itself:
            self._judge_never_stepped(records)

    def _is_forgotten(self, leaf: Leaf) -> bool:
        tensor = leaf.tensor()
        gains = self.training.gains.get(leaf.bit)
        if not leaf.is_parameter or gains is None or not gains.ever:
            return False
        if tensor is not None and not tensor.requires_grad:
            return False
        if self._evaluated >> leaf.bit & 1 or gains.read:
            return False
        return self.training.stepped_after(leaf)

    def _is_kept(self, leaf: Leaf) -> bool:
        """Whether somebody put these values there, or moves them by hand."""
        tensor = leaf.tensor()
        if tensor is None or id(tensor) in self.copied:
            return True
        first = self._first.get(leaf.bit, self.log.clock)
        return any(
            write.clock > first or _bare(write.name) not in _INITIALISING
            for write in self.log.writes_to(tensor) or ()
        )

    def _judge(self, left: list[Leaf], stepped: list[OptimizerRecord]) -> None:
        # What never required grad is no leaf: an optimizer without one has only frozen parameters.
        idle = [
            record
            for record in stepped
            if not record.useful_steps and (record.leaves or record.steps >= _FEWEST_STEPS)
        ]
        doubled = [
            record
            for number, record in enumerate(stepped)
            if any(record.ever == one.ever for one in stepped[:number])
        ]
        meant = doubled or ([] if self.training.saw_cut else idle)
        if meant:
            self._report(left, meant[-1])
            return
        fresh = [leaf for leaf in left if not self._is_kept(leaf)]
        if not fresh:
            return
        copied = [record for record in stepped if record.mask and not record.mask & ~self._copies]
        if copied:
            self._report(fresh, copied[-1])
            return
        for record in stepped:
            lost = [
                leaf
                for leaf in fresh
                if self._is_partly_trained(leaf, record)
                or self._is_before(leaf, record)
                or self._is_fresh_after(leaf, record)
            ]
            if lost:
                self._report(lost, record)
                return

    def _is_copy(self, leaf: Leaf) -> bool:
        tensor = leaf.tensor()
        if tensor is None:
            return False
        writes = self.log.writes_to(tensor) or ()
        return id(tensor) in self.copied or any(_bare(write.name) == "copy_" for write in writes)

    def _is_partly_trained(self, leaf: Leaf, record: OptimizerRecord) -> bool:
        """Whether one module of the program has this parameter beside some that the optimizer moves."""
        return bool(self._partly.get(leaf.bit, 0) & record.ever)

    def _is_before(self, leaf: Leaf, record: OptimizerRecord) -> bool:
        """Whether parameters of the optimizer compute with the output; a prompt is trained through what stays as it is."""
        mine = self._behind.get(leaf.bit, 0) & record.ever
        return any(each.is_parameter for each in self.shadow.leaves_in(mine))

    def _is_fresh_after(self, leaf: Leaf, record: OptimizerRecord) -> bool:
        """Whether a layer drawn at random in this run computes with the output of layers that were, and that are trained."""
        mine = self._before.get(leaf.bit, 0) & record.ever
        return self._is_drawn(leaf) and any(self._is_drawn(each) for each in self.shadow.leaves_in(mine))

    def _is_drawn(self, leaf: Leaf) -> bool:
        tensor = leaf.tensor()
        writes = (self.log.writes_to(tensor) or ()) if tensor is not None and leaf.is_parameter else ()
        return any(_bare(write.name) in _DRAWING for write in writes)

    def _report(self, leaves: list[Leaf], record: OptimizerRecord) -> None:
        place = place_of(record.made[0])
        backward = self.training.last_reach(leaves[0])
        message = f"`{text_of(place, limit=40)}` leaves out {name_list(leaves)}: backward reaches them and no step moves them"
        steps = (
            *(
                step_at("call", "this backward computes their gradients", backward.stack)
                if backward is not None
                else ()
            ),
            *step_at("needed", "this step does not move them", record.last_step),
        )
        evidence: dict[str, Any] = {"parameters": [label(leaf) for leaf in leaves][:20]}
        self.ledger.add(Fault("parameters-not-optimized", message, place, steps, "warning", evidence))

    def _judge_never_stepped(self, records: list[OptimizerRecord]) -> None:
        moved = 0
        for record in records:
            moved |= record.ever if record.steps else 0
        for record in records:
            gained = [leaf for leaf in record.leaves.values() if self.training.gained(leaf)]
            lost = [leaf for leaf in gained if not moved >> leaf.bit & 1 and self._is_forgotten(leaf)]
            if record.steps or not lost or len(lost) != len(gained) or not record.made:
                continue
            gains = self.training.gains[lost[0].bit]
            if gains.ever < 2:
                continue
            made, taken = place_of(record.made[0]), self.training.step_after(gains.last)
            message = f"no step moves {name_list(lost)}: `{text_of(made, limit=40)}` is never stepped"
            if self._steps_elsewhere(taken):
                # The optimizer that steps here has a step of its own: this one took the place of the other's.
                place, steps = (
                    place_of(taken[0]),
                    step_at("made", "the optimizer that is never stepped", record.made),
                )
            else:
                place, steps = made, step_at("needed", "this step does not move them", taken or record.made)
            evidence = {"parameters": [label(leaf) for leaf in lost][:20]}
            self.ledger.add(Fault("parameters-not-optimized", message, place, steps, "warning", evidence))

    def _judge_no_step(self, records: list[OptimizerRecord]) -> None:
        """A whole run computed gradients for an optimizer, nobody looked at them, and nothing ever stepped."""
        for record in records:
            gained = [leaf for leaf in record.leaves.values() if self.training.gained(leaf)]
            books = [self.training.gains[leaf.bit] for leaf in gained]
            if not record.made or not books or any(each.read for each in books):
                continue
            if max(each.ever for each in books) < _FEWEST_STEPS or any(map(self._is_kept, gained)):
                continue
            backward = self.training.last_reach(gained[0])
            place = place_of(record.made[0])
            message = f"`{text_of(place, limit=40)}` was not stepped in the whole run: {name_list(gained)} never moved"
            steps = (
                step_at("call", "this backward computes their gradients", backward.stack) if backward else ()
            )
            evidence = {"parameters": [label(leaf) for leaf in gained][:20]}
            self.ledger.add(Fault("parameters-not-optimized", message, place, steps, "warning", evidence))

    def _steps_elsewhere(self, taken: Stack) -> bool:
        """Whether who takes this step takes another one on another line."""
        own = {step.optimizer for step in self.training.steps if taken and step.stack[:1] == taken[:1]}
        return any(step.optimizer in own and step.stack[:1] != taken[:1] for step in self.training.steps)


def _bare(name: str) -> str:
    return name.rpartition("::")[2].partition(".")[0]


def follow_copies(who: WhoTrains) -> None:
    """From here on it is known whose values were loaded."""
    module: Any = torch.nn.Module
    load = module.load_state_dict

    def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = load(self, *args, **kwargs)
        who.copied.update(id(each) for each in self.parameters())
        return result

    module.load_state_dict = load_state_dict
