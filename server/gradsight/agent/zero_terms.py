"""Terms of a loss whose gradient is zero everywhere: each of their ways to a leaf leads through `round`, `sign` or their kin."""

from __future__ import annotations

from collections.abc import Sequence

from gradsight.agent.faults import Fault, step_at
from gradsight.agent.graph import Node, base_name, walk_nodes
from gradsight.agent.oplog import OpLog, operator_label
from gradsight.agent.sites import place_of, text_of

_ZERO = frozenset(("Round", "Floor", "Ceil", "Trunc", "Sign"))
_JOINING = frozenset(("Add", "Sub", "Stack", "Cat"))
_LINEAR = _JOINING | frozenset(("Mul", "Div", "Neg", "Mean", "Sum"))
_LEAF = "AccumulateGrad"
_MOST_NODES = 2_000


def zero_term(nodes: Sequence[Node], log: OpLog) -> Fault | None:
    """The fault of a term that brings zeros to leaves which other terms of the loss train."""
    if not nodes or len(nodes) > _MOST_NODES or not any(base_name(node.name()) in _ZERO for node in nodes):
        return None
    trained = _leaves(nodes[0], _ZERO)
    chain, todo = set[Node](), [nodes[0]]
    while todo:
        node = todo.pop()
        name = base_name(node.name())
        if node in chain or name not in _LINEAR:
            continue
        chain.add(node)
        below = [successor for successor, _ in node.next_functions if successor is not None]
        todo.extend(below)
        for term in below if name in _JOINING and len(below) > 1 else ():
            if not _leaves(term, _ZERO) and _leaves(term, frozenset()) & trained:
                return _fault(term, nodes[0], log)
    return None


def _leaves(start: Node, closed: frozenset[str]) -> set[Node]:
    return {node for node in walk_nodes([start], closed) if base_name(node.name()) == _LEAF}


def _fault(term: Node, root: Node, log: OpLog) -> Fault | None:
    zero = next((node for node in walk_nodes([term], _ZERO) if base_name(node.name()) in _ZERO), None)
    maker = log.maker(zero) if zero is not None else None
    if maker is None or not maker.stack:
        return None
    place = place_of(maker.stack[0])
    message = f"the gradient of `{text_of(place, limit=40)}` is zero everywhere: this term of the loss trains nothing"
    joined = log.maker(root)
    steps = step_at("read", "added to the loss here", joined.stack) if joined is not None else ()
    return Fault("gradient-zero", message, place, steps, "warning", {"operator": operator_label(maker.name)})
