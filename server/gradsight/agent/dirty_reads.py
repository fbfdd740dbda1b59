"""Who read a value of the graph after a write that autograd did not record, and whether a gradient came from there.

    y = w * 2                 # the node of `y`
    with torch.no_grad():
        y *= 3                # autograd does not know
    z = y.sin()               # a reader: its node is made later, and hands a gradient on to the node of `y`

What an earlier reader of `y` hands on is right: it read the old value.  A tensor is known by the sequence number of its
node, and a reader is a node with an edge to it that was made after the write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from gradsight.agent.arrivals import Passage, meets
from gradsight.agent.graph import Geometry, Node
from gradsight.agent.numbering import IS_NATIVE, node_of, number_of

_MOST_READ = 256


class DirtyWrite(NamedTuple):
    """A write that autograd did not record: the number that the next node got, and the elements."""

    number: int
    geometry: Geometry


class DirtyRead(NamedTuple):
    here: Geometry
    """The elements that the tensor covers which was read."""
    written: DirtyWrite


class DirtyReads:
    """The reads after the writes of one line."""

    def __init__(self) -> None:
        self._reads: dict[int, DirtyRead | None] = {}
        self._forgotten = -1
        """The highest number of a node whose reads were dropped."""

    def note(self, tensor: torch.Tensor, here: Geometry, written: DirtyWrite) -> None:
        number, read = number_of(node_of(tensor)), DirtyRead(here, written)
        if number < 0 and not torch.is_grad_enabled():
            # A view made with grad mode off has no node, and who reads it with grad mode off gets none.
            return
        if self._reads.setdefault(number, read) != read:
            # Read as several tensors, or written several times: then any gradient counts.
            self._reads[number] = None
        if len(self._reads) > _MOST_READ:
            oldest = next(iter(self._reads))
            del self._reads[oldest]
            self._forgotten = max(self._forgotten, oldest)

    def listen(self, nodes: Sequence[Node]) -> list[Passage] | None:
        """Listeners behind every reader in a graph; None where not all of them are known."""
        numbers = {number_of(node) for node in nodes if node.next_functions}
        if not IS_NATIVE or not numbers or self._forgotten >= min(numbers) or -1 in self._reads:
            return None
        if any(self._reads[number] is None for number in numbers & self._reads.keys()):
            return None
        found = []
        for node in nodes:
            edges = self._edges_of(node)
            if edges:
                found.append(Passage(node, edges))
        return found or None

    def _edges_of(self, node: Node) -> dict[int, Callable[[Any], bool]]:
        edges: dict[int, Callable[[Any], bool]] = {}
        for edge, (successor, _) in enumerate(node.next_functions):
            read = self._reads.get(number_of(successor)) if successor is not None else None
            if read is not None and number_of(node) >= read.written.number:
                edges[edge] = partial(meets, here=read.here, written=read.written.geometry)
        return edges
