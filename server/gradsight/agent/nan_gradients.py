"""Gradients that are NaN or infinite while the loss is a number: where a derivative is infinite.

The root of zero, its logarithm, a division by zero: masked in the result or not, backward multiplies by the infinity.  What
such nodes saved is looked at before a backward, which frees it; the leaves below them afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradsight.agent.cuts import BackwardReach, label, name_list
from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.graph import Node, base_name, leaf_of, saved_tensors, untracked, walk_nodes
from gradsight.agent.numbering import number_of
from gradsight.agent.oplog import OpLog
from gradsight.agent.shadow import Mask, Shadow
from gradsight.agent.sites import place_of, text_of

_FIRST = 4
_MOST_NODES = 2_000
_MOST_STEEP = 50


def _has_zero(tensor: Any) -> bool:
    return bool((tensor == 0).any())


def _has_infinity(tensor: Any) -> bool:
    return not bool(torch.isfinite(tensor).all())


_STEEP: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Sqrt": ("result", lambda result: _has_zero(result) or _has_infinity(result)),
    "Rsqrt": ("result", _has_infinity),
    "Reciprocal": ("result", _has_infinity),
    "Exp": ("result", _has_infinity),
    "Div": ("other", _has_zero),
    "Log": ("self", _has_zero),
    "Log2": ("self", _has_zero),
    "Log10": ("self", _has_zero),
    "Pow": ("self", _has_zero),
    "Softmax": ("result", _has_infinity),
    "LogSoftmax": ("result", lambda result: bool(result.isnan().any())),
}


class NanGradients:
    """Looks at what steep nodes saved, and at what came out below them."""

    def __init__(self, log: OpLog, ledger: Ledger, shadow: Shadow) -> None:
        self.log = log
        self.ledger = ledger
        self.shadow = shadow
        self._count = 0
        self._steep: list[Node] = []
        self._told = False

    @quietly
    def before(self, nodes: Sequence[Node], roots: Sequence[Any]) -> None:
        """A backward is about to run from these roots over these nodes."""
        self._count += 1
        self._steep = []
        # What happens at all mostly happens at once; later backwards are looked at ever more rarely.
        if (
            self._told
            or len(nodes) > _MOST_NODES
            or (self._count > _FIRST and self._count & (self._count - 1))
        ):
            return
        named = [node for node in nodes if base_name(node.name()) in _STEEP][:_MOST_STEEP]
        self._steep = [node for node in named if _is_infinite_at(node)]
        if self._steep and not all(_is_number(root) for root in roots):
            self._steep = []

    @quietly
    def after(self, reach: BackwardReach) -> None:
        """The backward has given the leaves their gradients."""
        steep, self._steep = self._steep, []
        # Of several, the gradient came to the youngest first.
        for node in sorted(steep, key=number_of, reverse=True):
            spoilt = [
                leaf
                for leaf in self.shadow.leaves_in(self._below(node) & reach.reached)
                if _is_spoilt(leaf.tensor())
            ]
            operation = self.log.maker(node)
            if not spoilt or operation is None or not operation.stack:
                continue
            self._told = True
            place = place_of(operation.stack[0])
            message = (
                f"the gradient of {name_list(spoilt)} is not a number, and the loss is: "
                f"the derivative of `{text_of(place, limit=40)}` is infinite here"
            )
            steps = step_at("needed", "this backward", reach.stack)
            evidence = {"parameters": [label(leaf) for leaf in spoilt][:20]}
            self.ledger.add(Fault("gradient-is-nan", message, place, steps, "warning", evidence))
            return

    def _below(self, node: Node) -> Mask:
        mask = 0
        for each in walk_nodes([node]):
            tensor = leaf_of(each)
            leaf = self.shadow.known_leaf(tensor) if tensor is not None else None
            mask |= 1 << leaf.bit if leaf is not None else 0
        return mask


def _is_infinite_at(node: Node) -> bool:
    """Whether the derivative is infinite, or no number, at a value that this node saved and still holds."""
    name = base_name(node.name())
    attribute, asks = _STEEP[name]
    if name == "Pow" and not _is_steep_power(getattr(node, "_saved_exponent", None)):
        return False
    # Reading it by its plain name would unpack it, which hooks of the program, or our own, may hear.
    with untracked():
        return any(saved.attribute == attribute and asks(saved.data) for saved in saved_tensors(node))


def _is_steep_power(exponent: Any) -> bool:
    return isinstance(exponent, (int, float)) and exponent < 1 and exponent != 0


def _is_spoilt(tensor: torch.Tensor | None) -> bool:
    gradient = tensor.grad if tensor is not None else None
    return gradient is not None and gradient.layout is torch.strided and _has_infinity(gradient)


def _is_number(root: Any) -> bool:
    """Whether a loss is one, and not NaN."""
    return isinstance(root, torch.Tensor) and root.numel() == 1 and math.isfinite(root.detach().item())
