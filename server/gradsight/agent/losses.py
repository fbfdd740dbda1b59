"""Losses that apply an activation to what is already one: softmax before cross entropy, sigmoid before a logits loss."""

from __future__ import annotations

from collections.abc import Sequence

from gradsight.agent.faults import Fault, step_at
from gradsight.agent.graph import Node, base_name
from gradsight.agent.oplog import OpLog
from gradsight.agent.sites import place_of, text_of
from gradsight.agent.zero_terms import zero_term

_VIEWS = frozenset(
    ("View", "UnsafeView", "ReshapeAlias", "Transpose", "T", "Squeeze", "Unsqueeze", "Permute", "Alias", "Clone", "Select",
     "ToCopy")
)  # fmt: skip
_CHAINS = {
    "NllLoss": ("LogSoftmax", "Softmax", "softmax"),
    "NllLoss2D": ("LogSoftmax", "Softmax", "softmax"),
    "BinaryCrossEntropyWithLogits": ("", "Sigmoid", "sigmoid"),
}


def fault_of_loss(nodes: Sequence[Node], log: OpLog) -> Fault | None:
    """What is wrong with a loss by the look of its graph."""
    return doubled_activation(nodes, log) or zero_term(nodes, log)


def doubled_activation(nodes: Sequence[Node], log: OpLog) -> Fault | None:
    """The fault of a loss whose input has been through the activation before."""
    for node in nodes:
        chain = _CHAINS.get(base_name(node.name()))
        if chain is None:
            continue
        middle, activation, name = chain
        inner: Node | None = node
        if middle:
            inner = _below(node, middle)
        doubled = _below(inner, activation) if inner is not None else None
        maker = log.maker(node)
        if doubled is None and middle == "LogSoftmax" and maker is not None and maker.stack:
            # `nll_loss` takes logarithms: what a softmax makes is none.
            plain = _below(node, activation)
            if plain is not None:
                place = place_of(maker.stack[0])
                message = (
                    f"`{text_of(place)}` gets probabilities but expects their logarithms: use `log_softmax`"
                )
                first = log.maker(plain)
                steps = (
                    step_at("made", f"`{name}` makes probabilities here", first.stack)
                    if first is not None
                    else ()
                )
                return Fault("softmax-before-loss", message, place, steps, "warning", {})
        if doubled is None or maker is None or not maker.stack:
            continue
        place = place_of(maker.stack[0])
        message = f"`{text_of(place)}` applies {name} itself, and its input has been through {name} before"
        first = log.maker(doubled)
        steps = step_at("made", f"`{name}` is applied here already", first.stack) if first is not None else ()
        return Fault("softmax-before-loss", message, place, steps, "warning", {})
    return None


def _below(node: Node, wanted: str) -> Node | None:
    """The node of this kind directly under another, views aside."""
    for _ in range(6):
        successors = [successor for successor, _ in node.next_functions if successor is not None]
        if not successors:
            return None
        node = successors[0]
        name = base_name(node.name())
        if name == wanted:
            return node
        if name not in _VIEWS:
            return None
    return None
