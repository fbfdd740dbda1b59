"""Values of the graph that were changed behind its back, and loss terms that carry no gradient."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from gradsight.agent.cuts import FAULT_OF_CUT, BackwardReach, cut_place, name_list
from gradsight.agent.faults import Fault, Kind, step_at
from gradsight.agent.graph import Node
from gradsight.agent.numbering import number_of
from gradsight.agent.oplog import operator_label
from gradsight.agent.shadow import Divergence, Mask, Shadow
from gradsight.agent.sites import place_of, text_of

_DIRTY: dict[str, Kind] = {
    "dirty-alias": "alias-read-after-write",
    "dirty-data": "graph-written-without-grad",
    "dirty-no-grad": "graph-written-without-grad",
    "dirty-numpy": "alias-read-after-write",
}
UNRECORDED = frozenset(kind for kind, fault in _DIRTY.items() if fault == "graph-written-without-grad")
"""Writes to what is known to be of the graph: they are harmless where no gradient comes.  Who writes through an alias did not
want the graph's value changed, and a gradient of zero may be the harm."""
_ALIASES = {
    "dirty-alias": "a detached alias",
    "dirty-data": "`.data`",
    "dirty-numpy": "an array of the same memory",
}


def mark_faults(
    reach: BackwardReach,
    nodes: Sequence[Node],
    shadow: Shadow,
    trained: Mask,
    managed: Mask,
    is_done: Callable[[int], bool],
    unfelt: Container[int] = (),
) -> list[Fault]:
    """The faults of the marks that reached this loss; `is_done` knows the nodes of earlier backwards.

    `trained` are the leaves that somebody trains, `managed` those that an optimizer has.  `unfelt` are the bits of writes
    whose readers handed no gradient on.
    """
    faults = []
    dirty: dict[tuple[str, int], list[Divergence]] = {}
    for event in shadow.events_in(reach.events):
        if not event.stack or event.bit in unfelt:
            continue
        if event.kind in _DIRTY:
            dirty.setdefault((event.kind, id(event.stack[0].code)), []).append(event)
        elif event.kind in ("dead-term", "copied-term", "dead-part"):
            fault = _dead_term_fault(event, reach, nodes, shadow, trained, is_done)
            if fault is not None and _is_meant_to_train(event, shadow, trained, managed):
                faults.append(fault)
        elif event.kind == "implicit":
            fault = _implicit_fault(event, reach, shadow, trained, is_done)
            if fault is not None:
                faults.append(fault)
    faults.extend(_dirty_fault(events, reach) for events in dirty.values())
    return faults


def _dirty_fault(events: list[Divergence], reach: BackwardReach) -> Fault:
    """Writes of one function to values of the graph are one story, told at the first of them."""
    first = events[0]
    place = place_of(first.stack[0])
    text = text_of(place) or operator_label(first.operator)
    if first.kind == "dirty-no-grad":
        message = f"`{text}` changes a tensor of the graph with grad mode off, so its gradient is wrong"
    else:
        message = f"`{text}` writes through {_ALIASES[first.kind]}: the graph tensor behind it changes too, its gradient does not"
    steps = tuple(
        step
        for event in events
        for step in step_at("written", f"written here by `{operator_label(event.operator)}`", event.stack)
    )
    steps += step_at("needed", "the loss that reads the changed value", reach.stack)
    return Fault(
        _DIRTY[first.kind], message, place, steps, "warning", {"operator": operator_label(first.operator)}
    )


def _is_meant_to_train(event: Divergence, shadow: Shadow, trained: Mask, managed: Mask) -> bool:
    """Whether the part without gradient was meant to train what the rest of the loss trains.

    A gradient by the parameters themselves, or by something computed from them, is a step of an inner optimization or a
    weight: first order on purpose.  A copy that an optimizer has is a parameter that starts from these values.
    """
    if event.kind == "copied-term":
        return not event.live & managed
    if event.kind == "dead-part":
        taken = 0
        for inner in shadow.events_in(event.inner):
            taken |= inner.live
        return bool(event.live & trained) and not taken & (managed | _trained_parameters(shadow, trained))
    return True


def _trained_parameters(shadow: Shadow, trained: Mask) -> Mask:
    mask = 0
    for leaf in shadow.leaves_in(trained):
        mask |= 1 << leaf.bit if leaf.is_parameter else 0
    return mask


def _implicit_fault(
    event: Divergence, reach: BackwardReach, shadow: Shadow, trained: Mask, is_done: Callable[[int], bool]
) -> Fault | None:
    """A function of `math` took a tensor for a number, and the number came back into the loss."""
    if not event.mask & trained or (event.source_number >= 0 and is_done(event.source_number)):
        return None
    leaves = shadow.leaves_in(event.mask & trained)
    kind, place, steps = cut_place(event, shadow)
    message = (
        f"`{text_of(place)}` makes a plain number of a tensor, and the loss is computed with it: "
        f"no gradient of it reaches {name_list(leaves)}"
    )
    steps += step_at("needed", "the backward of this loss", reach.stack)
    return Fault(kind, message, place, tuple(steps), "warning", {"count": len(leaves)})


def _dead_term_fault(
    event: Divergence,
    reach: BackwardReach,
    nodes: Sequence[Node],
    shadow: Shadow,
    trained: Mask,
    is_done: Callable[[int], bool],
) -> Fault | None:
    """A term of the loss that was computed from parameters and is a constant for autograd.

    A detached copy of something that the same loss also holds alive is a deliberate stop-gradient; a value of an earlier
    backward (a moving average) has done its training already.
    """
    for inner in sorted(shadow.events_in(event.inner), key=lambda each: each.bit, reverse=True):
        # A gradient is a constant for the leaves behind it, not for what it was taken by.
        concerned = inner.mask & trained & ~inner.live
        if inner.kind not in FAULT_OF_CUT or not inner.stack or not concerned:
            continue
        if inner.source_number >= 0 and is_done(inner.source_number):
            continue
        if inner.kind in ("detach", "data") and inner.source_number >= 0:
            numbers = {number_of(node) for node in nodes}
            if inner.source_number in numbers:
                continue
        leaves = shadow.leaves_in(concerned)
        kind, place, steps = cut_place(inner, shadow)
        text = text_of(place)
        if inner.kind == "create_graph":
            message = f"`{text}` has no `create_graph=True`: this term of the loss is a constant for {name_list(leaves)}"
        else:
            message = f"`{text}` makes a term of the loss constant: it trains nothing in {name_list(leaves)}"
        steps += step_at("read", "the constant term is added here", event.stack)
        steps += step_at("needed", "the backward of the whole loss", reach.stack)
        return Fault(kind, message, place, tuple(steps), "warning", {"count": len(leaves)})
    return None
