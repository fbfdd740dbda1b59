"""Averages that feed on themselves with a graph: each step makes a new value of the old one, and no backward goes through it.

An *update* is a value whose graph, a few sums and products down, has the update of an earlier optimizer step on the same line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.numbering import node_of, number_of
from gradsight.agent.sites import Stack, place_of, text_of

_LONG_ENOUGH = 3
_DEPTH = 4
_MOST_UPDATES = 20_000
_PASSING = ("AddBackward", "SubBackward", "MulBackward", "DivBackward", "LerpBackward")
Key = tuple[str, int, str]


@dataclass
class _Chain:
    """The updates of one line: the step in which each was made, by its node's number."""

    stack: Stack
    steps: dict[int, int] = field(default_factory=dict)
    linked: set[int] = field(default_factory=set)
    used: bool = False


class AverageWatch:
    """Hears of tensors that are bound, changed or kept, and of backwards."""

    def __init__(self, ledger: Ledger, steps: Callable[[], int]) -> None:
        self.ledger = ledger
        self.steps = steps
        self._chains: dict[Key, _Chain] = {}

    @quietly
    def bind(self, key: Key, value: torch.Tensor, stack: Callable[[], Stack]) -> None:
        node = node_of(value)
        if node is None or not node.name().startswith(_PASSING):
            return
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chains[key] = _Chain(stack())
        if chain.used or len(chain.steps) > _MOST_UPDATES:
            return
        now = self.steps()
        if any(chain.steps.get(number, now) != now for number in _below(node)):
            chain.linked.add(now)
        chain.steps[number_of(node)] = now

    @quietly
    def backward(self, numbers: frozenset[int]) -> None:
        """A backward that goes through an update needs it."""
        for chain in self._chains.values():
            chain.used = chain.used or not numbers.isdisjoint(chain.steps)

    @quietly
    def finish(self) -> None:
        for (_, _, name), chain in self._chains.items():
            if len(chain.linked) >= _LONG_ENOUGH - 1 and not chain.used and chain.stack:
                place = place_of(chain.stack[0])
                message = (
                    f"`{text_of(place)}` records every update of `{name}`, and no later `backward()` needs it"
                )
                steps = step_at("made", "update it under `torch.no_grad()`", chain.stack)
                evidence: dict[str, Any] = {"rounds": len(chain.linked) + 1}
                self.ledger.add(Fault("graph-kept-alive", message, place, steps, "warning", evidence))


def _below(node: Any) -> Iterator[int]:
    """The numbers of the nodes that a value is a sum or multiple of, as far as they are near."""
    level = [node]
    for _ in range(_DEPTH):
        level = [
            below
            for each in level
            for below, _ in each.next_functions
            if below is not None and below.name().startswith(_PASSING)
        ]
        yield from map(number_of, level)
