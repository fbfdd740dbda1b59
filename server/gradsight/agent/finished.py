"""Backwards that came through: over which lines' nodes they went, and whether everything they needed was as it was saved.

A gradient computed from saved tensors that nobody has changed is the gradient of the program with a copy of each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradsight.agent.graph import Node, base_name, has_hidden_saves
from gradsight.agent.oplog import OpLog
from gradsight.agent.sites import FrameKey, Stack, place_of

_MOST_PLACES = 500
_MOST_MAKERS = 4_000


class _Finished:
    """The backwards of one line."""

    def __init__(self, stack: Stack, clock: int) -> None:
        self.stack = stack
        self.first = self.last = clock
        self.is_exact = True
        # (line, operator) -> the first and the last time it made a node of their graphs.
        self.made: dict[tuple[FrameKey, str], list[int]] = {}


class FinishedBackwards:
    """What a verdict on a prediction about backward can rest on."""

    def __init__(self, log: OpLog) -> None:
        self.log = log
        self._places: dict[Stack, _Finished] = {}

    def note(self, stack: Stack, nodes: Sequence[Node], is_exact: bool) -> None:
        """A backward over these nodes has finished."""
        clock = self.log.clock
        entry = self._places.get(stack)
        if entry is None:
            if len(self._places) >= _MOST_PLACES:
                return
            entry = self._places[stack] = _Finished(stack, clock)
        entry.last = clock
        entry.is_exact = entry.is_exact and is_exact
        for node in nodes:
            maker = self.log.maker(node) if node.next_functions else None
            if maker is None or not maker.stack:
                continue
            called = maker.name.rsplit("::", 1)[-1]
            # `mul_` and `mul` record a node of one name; what they keep for backward is not the same tensor.
            recorded = base_name(node.name()) + "_" * called.endswith("_")
            for name in {recorded, called}:
                for frame in maker.stack:
                    times = entry.made.get((frame, name))
                    if times is not None:
                        times[1] = max(times[1], maker.clock)
                    elif len(entry.made) < _MOST_MAKERS:
                        entry.made[frame, name] = [maker.clock, maker.clock]

    def as_json(self) -> list[dict[str, Any]]:
        """Each line that ran backward, with the lines that made its graph."""
        return [
            {
                "needed": [[place.filename, place.row] for place in map(place_of, entry.stack)],
                "first": entry.first,
                "last": entry.last,
                "exact": entry.is_exact,
                "made": [
                    [place.filename, place.row, name, first, last]
                    for (frame, name), (first, last) in entry.made.items()
                    for place in (place_of(frame),)
                ],
            }
            for entry in self._places.values()
        ]


def shows_all_it_saved(nodes: Sequence[Node]) -> bool:
    """Whether no hooks of the program stand before what the nodes saved."""
    return not any(has_hidden_saves(node) for node in nodes)
