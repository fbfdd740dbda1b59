"""Parameters whose gradient is exactly zero in every backward, and where on its way it became so.

*Cancelled*: a value gets gradients from several sides, none of them is zero, and their sum is: `x + (q - x)`.
*Even*: a softmax over one element is one, whatever it is given.
*Idle*: of two factors that are all zero, each is the other's gradient.
The first backward that leaves a zero behind makes a leaf a suspect; at the later ones the nodes above it are listened to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradsight.agent.cuts import BackwardReach, label, name_list
from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.graph import Node, base_name, is_zero, leaf_of, untracked, walk_nodes
from gradsight.agent.nan_gradients import NanGradients
from gradsight.agent.numbering import number_of
from gradsight.agent.oplog import Operation, OpLog
from gradsight.agent.shadow import Leaf, Mask, Shadow
from gradsight.agent.sites import Stack, place_of, text_of
from gradsight.agent.training import TrainingWatch

_MOST_LISTENED = 3
_MOST_NODES = 2_000
_FEWEST_ZEROS = 2
_SOFTMAX = ("Softmax", "LogSoftmax")
_PRODUCTS = frozenset(("Mul", "Mm", "Addmm", "Bmm", "Baddbmm", "Mv", "Dot"))


@dataclass
class _Passage:
    """What came to a node, and what it passed on along each of its edges: whether there was a number other than zero."""

    came: bool = False
    passed: list[bool] = field(default_factory=list)


@dataclass(frozen=True)
class _Loss:
    """Where the gradients of some leaves became zero."""

    operation: Operation
    leaves: Mask
    reason: str
    backward: Stack


class VanishedGradients:
    """Counts zeros per leaf, and looks for the node behind them."""

    def __init__(self, log: OpLog, ledger: Ledger, shadow: Shadow, training: TrainingWatch) -> None:
        self.log = log
        self.ledger = ledger
        self.shadow = shadow
        self.training = training
        self._zeros: dict[int, int] = {}
        self._felt: Mask = 0
        self._listened = 0
        self._passages: dict[Node, _Passage] = {}
        self._even: set[Node] = set()
        self._handles: list[Any] = []
        self._losses: list[_Loss] = []
        self._nans = NanGradients(log, ledger, shadow)

    @quietly
    def before(self, nodes: Sequence[Node], reach: BackwardReach, roots: Sequence[Any]) -> None:
        """A backward is about to run from these roots over these nodes."""
        self._nans.before(nodes, roots)
        if not self._suspects(reach) or self._listened >= _MOST_LISTENED or len(nodes) > _MOST_NODES:
            return
        self._listened += 1
        # What a softmax saved is gone when the backward is over.
        self._even = {node for node in nodes if _is_even(node)}
        for node in nodes:
            passage = self._passages[node] = _Passage()
            self._handles.append(node.register_prehook(_comes(passage)))
            if node.next_functions:
                self._handles.append(node.register_hook(_passes(passage)))

    @quietly
    def after(self, nodes: Sequence[Node], reach: BackwardReach) -> None:
        """The backward has given the leaves their gradients."""
        self._nans.after(reach)
        for handle in self._handles:
            handle.remove()
        passages, self._passages, self._handles = self._passages, {}, []
        for leaf in self.shadow.leaves_in(reach.reached & self.training.trained & ~self._felt):
            tensor = leaf.tensor()
            grad = tensor.grad if tensor is not None else None
            if grad is None or grad.layout is not torch.strided or not is_zero(grad):
                self._felt |= 1 << leaf.bit
            else:
                self._zeros[leaf.bit] = self._zeros.get(leaf.bit, 0) + 1
        suspects = self._suspects(reach)
        if passages and suspects:
            self._search(nodes, passages, suspects, reach)

    def _suspects(self, reach: BackwardReach) -> Mask:
        mask = 0
        for bit in self._zeros:
            mask |= 1 << bit
        return mask & ~self._felt & reach.reached & reach.alive

    def _search(
        self, nodes: Sequence[Node], passages: dict[Node, _Passage], suspects: Mask, reach: BackwardReach
    ) -> None:
        givers: dict[Node, list[Node]] = {}
        for node in nodes:
            for (successor, _), passed in zip(node.next_functions, passages[node].passed):
                if successor is not None and passed:
                    givers.setdefault(successor, []).append(node)
        for node in sorted(nodes, key=number_of, reverse=True):
            found = self._lost_at(node, passages, givers.get(node, []))
            if found is None:
                continue
            behind, reason = found
            below = self._leaves_below(node) & suspects
            operation = self.log.maker(behind)
            if below and operation is not None and operation.stack:
                self._losses.append(_Loss(operation, below, reason, reach.stack))
                suspects &= ~below

    def _lost_at(
        self, node: Node, passages: dict[Node, _Passage], givers: list[Node]
    ) -> tuple[Node, str] | None:
        """The node whose line explains why nothing is left here, and how it says so."""
        passage = passages[node]
        # What a bias shifts in two terms cancels by itself: only the gradients of one computed value are compared.
        if not passage.came and len(givers) > 1 and node.next_functions:
            return max(givers, key=number_of), "gives it back what another path takes away"
        if passage.came and passage.passed and not any(passage.passed) and node in self._even:
            return node, "is the same whatever it is given: its dimension has one element"
        if passage.came and len(passage.passed) > 1 and not any(passage.passed):
            if base_name(node.name()) in _PRODUCTS:
                return node, "multiplies values that are all zero, and so both stay zero"
        return None

    def _leaves_below(self, node: Node) -> Mask:
        mask = 0
        for each in walk_nodes([node]):
            tensor = leaf_of(each)
            leaf = self.shadow.known_leaf(tensor) if tensor is not None else None
            mask |= 1 << leaf.bit if leaf is not None else 0
        return mask

    @quietly
    def finish(self) -> None:
        """Says whose gradient was zero in every backward."""
        for loss in self._losses:
            leaves = [
                leaf
                for leaf in self.shadow.leaves_in(loss.leaves & ~self._felt)
                if self._zeros.get(leaf.bit, 0) >= _FEWEST_ZEROS
            ]
            if leaves:
                self._report(loss, leaves)

    def _report(self, loss: _Loss, leaves: list[Leaf]) -> None:
        place = place_of(loss.operation.stack[0])
        count = self._zeros[leaves[0].bit]
        message = (
            f"the gradient of {name_list(leaves)} is zero in all {count} backwards: "
            f"`{text_of(place, limit=40)}` {loss.reason}"
        )
        steps = (
            *step_at("cut", "the gradient becomes zero here", loss.operation.stack),
            *step_at("needed", "this backward", loss.backward),
        )
        evidence = {"parameters": [label(leaf) for leaf in leaves][:20], "backwards": count}
        self.ledger.add(Fault("gradient-zero", message, place, steps, "warning", evidence))


def _comes(passage: _Passage) -> Any:
    def note(gradients: tuple[Any, ...]) -> None:
        with untracked():
            passage.came = passage.came or any(not is_zero(each) for each in gradients)

    return note


def _passes(passage: _Passage) -> Any:
    def note(passed: tuple[Any, ...], came: tuple[Any, ...]) -> None:
        with untracked():
            passage.passed = [not is_zero(each) for each in passed]

    return note


def _is_even(node: Node) -> bool:
    """Whether a softmax goes over a dimension with one element."""
    if base_name(node.name()) not in _SOFTMAX:
        return False
    try:
        result, dimension = getattr(node, "_saved_result", None), getattr(node, "_saved_dim", None)
    except RuntimeError:
        # An earlier backward has freed it, and this one is about to fail.
        return False
    if not isinstance(result, torch.Tensor) or not isinstance(dimension, int):
        return False
    # Torch keeps a negative dimension as the unsigned number it wraps to.
    at = dimension - (1 << 64) if dimension >= 1 << 63 else dimension
    return bool(result.dim() > 0 and result.shape[at] == 1)
