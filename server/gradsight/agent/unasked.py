"""Losses that nobody called backward on: scalars of the graph that user code bound to a name and left alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gradsight.agent.numbering import node_of, number_of
from gradsight.agent.shadow import Mask, Shadow
from gradsight.agent.sites import Stack

_MOST_SCALARS = 2_000


@dataclass
class Scalar:
    """The scalar that a line bound last: its node, the leaves autograd reaches from it, and whether backward ran."""

    name: str
    number: int
    live: Mask
    stack: Stack
    is_used: bool = False


class Unasked:
    """The scalars of a run, by the line and the name that they were bound to."""

    def __init__(self, shadow: Shadow) -> None:
        self.shadow = shadow
        self._scalars: dict[tuple[str, int, str], Scalar] = {}

    def bind(self, key: tuple[str, int, str], value: torch.Tensor, stack: Stack) -> None:
        """A line bound a name to a tensor with one element."""
        node = node_of(value)
        if number_of(node) < 0 or len(self._scalars) >= _MOST_SCALARS:
            return
        known = self._scalars.get(key)
        was_used = known is not None and known.is_used
        live = self.shadow.read(value)[1]
        self._scalars[key] = Scalar(key[2], number_of(node), live, stack, was_used)

    def used(self, numbers: frozenset[int]) -> None:
        """A backward ran through these nodes."""
        for scalar in self._scalars.values():
            scalar.is_used = scalar.is_used or scalar.number in numbers

    def left(self) -> list[Scalar]:
        """The scalars that no backward came through."""
        return [scalar for scalar in self._scalars.values() if not scalar.is_used and scalar.stack]

    def for_leaves(self, mask: Mask) -> Scalar | None:
        """A scalar that would have trained these leaves, had anybody called backward on it."""
        for scalar in self._scalars.values():
            if not scalar.is_used and scalar.stack and not mask & ~scalar.live:
                return scalar
        return None
