"""Graphs that nobody will use again and that stay alive: in running totals and in lists of losses."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.numbering import node_of, number_of
from gradsight.agent.sites import FrameKey, Stack, place_of, text_of

_LONG_ENOUGH = 3


@dataclass
class _Kept:
    """The graph nodes that one line keeps, and the number of optimizer steps when it did."""

    stack: Stack
    numbers: list[int] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    used: bool = False
    held: list[weakref.ref[torch.Tensor]] = field(default_factory=list)
    lets_go: bool = False
    """Whether something that was put into the collection was gone when the next came."""

    def add(self, number: int, round_number: int) -> None:
        self.numbers.append(number)
        self.rounds.append(round_number)
        del self.numbers[:-64]
        del self.rounds[:-64]

    @property
    def spans_rounds(self) -> bool:
        return len(self.numbers) >= _LONG_ENOUGH and len(set(self.rounds)) >= _LONG_ENOUGH


class Retention:
    """Follows totals that feed on themselves and tensors put into collections."""

    def __init__(self, ledger: Ledger, rounds: Callable[[], int]) -> None:
        self.ledger = ledger
        self.rounds = rounds
        self._totals: dict[tuple[str, int, str], _Kept] = {}
        self._stored: dict[FrameKey, _Kept] = {}

    @quietly
    def bind(self, key: tuple[str, int, str], value: torch.Tensor, stack: Callable[[], Stack]) -> None:
        """A name was bound to a scalar of the graph."""
        node = node_of(value)
        number = number_of(node)
        kept = self._totals.get(key)
        if node is None or number < 0:
            if kept is not None and not kept.spans_rounds:
                del self._totals[key]
            return
        if kept is None:
            kept = self._totals[key] = _Kept(stack())
        below = {number_of(successor) for successor, _ in node.next_functions}
        if kept.numbers and kept.numbers[-1] not in below:
            if kept.spans_rounds:
                return
            kept.numbers.clear()
            kept.rounds.clear()
        kept.add(number, self.rounds())

    @quietly
    def store(self, value: torch.Tensor, stack: Stack) -> None:
        """A tensor was put into a collection."""
        number = number_of(node_of(value))
        if number >= 0 and stack:
            kept = self._stored.get(stack[0])
            if kept is None:
                kept = self._stored[stack[0]] = _Kept(stack)
            kept.lets_go = kept.lets_go or any(earlier() is None for earlier in kept.held)
            kept.held.append(weakref.ref(value))
            del kept.held[:-64]
            kept.add(number, self.rounds())

    @quietly
    def backward(self, numbers: frozenset[int]) -> None:
        """A backward ran through these nodes: what it used of several rounds is kept on purpose."""
        for kept in (*self._totals.values(), *self._stored.values()):
            if not kept.used and len(kept.numbers) > 1:
                kept.used = len({number for number in kept.numbers if number in numbers}) > 1

    @quietly
    def finish(self) -> None:
        """Says which lines kept graphs of many rounds for nothing."""
        for (_, _, name), kept in self._totals.items():
            if kept.spans_rounds and not kept.used:
                self._report(kept, f"`{name}`")
        for kept in self._stored.values():
            if kept.spans_rounds and not kept.used and not kept.lets_go:
                self._report(kept, "the list")

    def _report(self, kept: _Kept, holder: str) -> None:
        if not kept.stack:
            return
        place = place_of(kept.stack[0])
        message = f"`{text_of(place)}` keeps the graph of every step in memory, in {holder}, and no later `backward()` needs it"
        steps = step_at("made", "use `.item()` or `.detach()` here", kept.stack)
        evidence: dict[str, Any] = {"rounds": len(set(kept.rounds))}
        self.ledger.add(Fault("graph-kept-alive", message, place, steps, "warning", evidence))
