"""Values of the graph that were changed behind its back, and loss terms that carry no gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradsight.agent.cuts import CODES, Reach, cut_place, name_list
from gradsight.agent.faults import Fault, step_at
from gradsight.agent.graph import Node
from gradsight.agent.numbering import number_of
from gradsight.agent.oplog import operator_label
from gradsight.agent.shadow import Event, Mask, Shadow
from gradsight.agent.sites import place_of, text_of

_DIRTY = {"dirty-alias": "GS107", "dirty-data": "GS104", "dirty-no-grad": "GS105"}


def mark_faults(
    reach: Reach, nodes: Sequence[Node], shadow: Shadow, trained: Mask, is_done: Callable[[int], bool]
) -> list[Fault]:
    """The faults of the marks that reached this loss; `is_done` knows the nodes of earlier backwards."""
    faults = []
    dirty: dict[tuple[str, int], list[Event]] = {}
    for event in shadow.events_in(reach.events):
        if not event.stack:
            continue
        if event.kind in _DIRTY:
            dirty.setdefault((event.kind, id(event.stack[0].code)), []).append(event)
        elif event.kind == "dead-term":
            fault = _dead_term_fault(event, reach, nodes, shadow, trained, is_done)
            if fault is not None:
                faults.append(fault)
    faults.extend(_dirty_fault(events, reach) for events in dirty.values())
    return faults


def _dirty_fault(events: list[Event], reach: Reach) -> Fault:
    """Writes of one function to values of the graph are one story, told at the first of them."""
    first = events[0]
    place = place_of(first.stack[0])
    text = text_of(place) or operator_label(first.operator)
    if first.kind == "dirty-no-grad":
        message = f"`{text}` changes a tensor of the graph without grad mode: the gradient does not know"
    else:
        alias = "`.data`" if first.kind == "dirty-data" else "a detached alias"
        message = (
            f"`{text}` writes through {alias}: the graph tensor behind it changes too, its gradient does not"
        )
    steps = tuple(
        step
        for event in events
        for step in step_at("written", f"written here by `{operator_label(event.operator)}`", event.stack)
    )
    steps += step_at("needed", "the loss that reads the changed value", reach.stack)
    return Fault(
        _DIRTY[first.kind], message, place, steps, "warning", {"operator": operator_label(first.operator)}
    )


def _dead_term_fault(
    event: Event,
    reach: Reach,
    nodes: Sequence[Node],
    shadow: Shadow,
    trained: Mask,
    is_done: Callable[[int], bool],
) -> Fault | None:
    """A term of the loss that was computed from parameters and is a constant for autograd.

    A detached copy of something that the same loss also holds alive is a deliberate stop-gradient; a value of an earlier
    backward (a moving average) has done its training already.
    """
    for inner in shadow.events_in(event.inner):
        if inner.kind not in CODES or not inner.stack or not inner.mask & trained:
            continue
        if inner.source_number >= 0 and is_done(inner.source_number):
            continue
        if inner.kind in ("detach", "data") and inner.source_number >= 0:
            numbers = {number_of(node) for node in nodes}
            if inner.source_number in numbers:
                continue
        leaves = shadow.leaves_in(inner.mask & trained)
        code, place, steps = cut_place(inner, shadow)
        text = text_of(place)
        if inner.kind == "create_graph":
            message = f"`{text}` has no `create_graph=True`: this term of the loss is a constant for {name_list(leaves)}"
        else:
            message = f"`{text}` makes a term of the loss constant: it trains nothing in {name_list(leaves)}"
        steps += step_at("read", "the constant term is added here", event.stack)
        steps += step_at("needed", "the backward of the whole loss", reach.stack)
        return Fault(code, message, place, tuple(steps), "warning", {"count": len(leaves)})
    return None
