"""Where the boxes and arrows of a drawing stand: one layout for the editor's panel and for the command line.

Values flow downwards, from the leaves to `backward()`.  A box has up to three lines: its part in the fault, the operator,
and the line of source that made it.  Words: a *layer* is a row of boxes; a *joint* is a place without a box where an
arrow passes through a layer; *slots* are the boxes and joints of a layer, from left to right.

A layer is chosen by the longest way from a leaf.  The order in a layer is the one of several sweeps with the fewest
crossings.  The places along a layer are, for that order, the nearest in squares to the middle of each slot's neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gradsight.session.graphs import Drawing, DrawnNode

ROLE_WORDS = {
    "plain": "",
    "leaf": "leaf",
    "saved": "saved for backward",
    "written": "overwritten here",
    "needed": "needed here",
    "cut": "cut here",
}
LONGEST_LINE = 38
CHARACTER, LINE, PADDING = 7.3, 17, 10
"""Sizes of the text in pixels, in a monospace font of 12."""
GAP_X, GAP_Y, MARGIN = 36, 34, 16
BESIDE = 24
"""How far a write runs beside the flow between the same two boxes."""
ORDERING_SWEEPS, PLACING_SWEEPS = 12, 40

Point = tuple[float, float]
Edge = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Box:
    """A box by its top left corner, and the lines of text in it."""

    lines: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Boxes by the names of their nodes, and for every arrow of the drawing the points it goes through."""

    boxes: dict[str, Box]
    paths: list[tuple[Point, ...]]
    width: float
    height: float


def lines_of(node: DrawnNode) -> tuple[str, ...]:
    """The text of a box; a tooltip has what is cut off here."""
    lines = [ROLE_WORDS[node.role], node.name, node.source]
    return tuple(
        line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…" for line in lines if line
    )


def lay_out(drawing: Drawing) -> Layout:
    """The places of all boxes and arrows of a drawing."""
    texts = {name: lines_of(node) for name, node in drawing.nodes.items()}
    sizes = {name: _size(lines) for name, lines in texts.items()}
    downward = _downward(drawing)
    layer_of = _layers(sizes, downward)
    chains = {edge: _chain(edge, layer_of) for edge in downward}
    slots: list[list[str]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for name, layer in layer_of.items():
        slots[layer].append(name)
    for chain in chains.values():
        for layer, joint in enumerate(chain[1:-1], layer_of[chain[0]] + 1):
            slots[layer].append(joint)
    links = [link for chain in chains.values() for link in pairwise(chain)]
    slots = _with_fewest_crossings(slots, links)
    centres = _centres(slots, links, {name: size[0] for name, size in sizes.items()})
    tops, bottoms = _bounds(slots, sizes)
    boxes = {
        name: Box(texts[name], centres[name] - sizes[name][0] / 2, tops[layer_of[name]], *sizes[name])
        for name in drawing.nodes
    }
    width = max((box.x + box.width for box in boxes.values()), default=0) + MARGIN
    joints = {
        joint: ((centres[joint], tops[layer]), (centres[joint], bottoms[layer]))
        for chain in chains.values()
        for layer, joint in enumerate(chain[1:-1], layer_of[chain[0]] + 1)
    }
    width = max([width, *(x + MARGIN for (x, _), _ in joints.values())])
    paths = [_path(edge, drawing, chains, boxes, joints) for edge in drawing.edges]
    return Layout(boxes, paths, width, max(bottoms, default=0.0) + MARGIN)


def _downward(drawing: Drawing) -> list[Edge]:
    """Every pair of boxes with an arrow, from the upper to the lower one: a write stands below what it changed."""
    flow = [(start, end) for start, end, kind in drawing.edges if kind == "flow"]
    found = dict.fromkeys(_without_circles(flow))
    for start, end, kind in drawing.edges:
        if kind == "write" and not _leads(found, start, end):
            found[end, start] = None
    return list(found)


def _without_circles(edges: Iterable[Edge]) -> list[Edge]:
    """The edges, but for those that lead back: torch records no circle, and a drawing must not depend on it."""
    kept: list[Edge] = []
    for start, end in edges:
        if start != end and not _leads(kept, end, start):
            kept.append((start, end))
    return kept


def _leads(edges: Iterable[Edge], start: str, end: str) -> bool:
    """Whether a way goes from one box down to another."""
    below: dict[str, list[str]] = {}
    for upper, lower in edges:
        below.setdefault(upper, []).append(lower)
    reached, waiting = {start}, [start]
    while waiting:
        for name in below.get(waiting.pop(), ()):
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    return end in reached


def _layers(names: Iterable[str], downward: Sequence[Edge]) -> dict[str, int]:
    """The layer of every box: below all that lead to it, and a leaf right above who uses it first."""
    layer = dict.fromkeys(names, 0)
    is_moving = True
    while is_moving:
        is_moving = False
        for upper, lower in downward:
            if layer[lower] <= layer[upper]:
                layer[lower] = layer[upper] + 1
                is_moving = True
    has_above = {lower for _, lower in downward}
    for name in layer:
        below = [layer[lower] for upper, lower in downward if upper == name]
        if below and name not in has_above:
            layer[name] = min(below) - 1
    return layer


def _chain(edge: Edge, layer_of: Mapping[str, int]) -> tuple[str, ...]:
    upper, lower = edge
    joints = (f"{upper} {lower} {layer}" for layer in range(layer_of[upper] + 1, layer_of[lower]))
    return (upper, *joints, lower)


def _with_fewest_crossings(slots: list[list[str]], links: Sequence[Edge]) -> list[list[str]]:
    """The best order that sweeps down and up find, each layer sorted by the mean place of its neighbours."""
    above, below = _neighbours(links)
    best, fewest = [list(layer) for layer in slots], _crossings(slots, links)
    order = [list(layer) for layer in slots]
    for sweep in range(ORDERING_SWEEPS):
        if fewest == 0:
            break
        near = above if sweep % 2 == 0 else below
        for layer in order if sweep % 2 == 0 else reversed(order):
            place = {name: index for each in order for index, name in enumerate(each)}
            mean = {
                name: sum(place[other] for other in near.get(name, ())) / len(near[name])
                if near.get(name)
                else place[name]
                for name in layer
            }
            layer.sort(key=mean.__getitem__)
        crossings = _crossings(order, links)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in order], crossings
    return best


def _crossings(slots: Sequence[Sequence[str]], links: Sequence[Edge]) -> int:
    place = {name: (layer, index) for layer, names in enumerate(slots) for index, name in enumerate(names)}
    by_layer: dict[int, list[tuple[int, int]]] = {}
    for upper, lower in links:
        layer, index = place[upper]
        by_layer.setdefault(layer, []).append((index, place[lower][1]))
    return sum(
        (first[0] - second[0]) * (first[1] - second[1]) < 0
        for arrows in by_layer.values()
        for number, first in enumerate(arrows)
        for second in arrows[:number]
    )


def _neighbours(links: Sequence[Edge]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for upper, lower in links:
        above.setdefault(lower, []).append(upper)
        below.setdefault(upper, []).append(lower)
    return above, below


def _centres(
    slots: Sequence[Sequence[str]], links: Sequence[Edge], widths: Mapping[str, float]
) -> dict[str, float]:
    """The middle of every slot along its layer; the leftmost box stands at the margin."""
    above, below = _neighbours(links)
    centres: dict[str, float] = {}
    for layer in slots:
        centres.update(_spread(layer, dict.fromkeys(layer, 0.0), widths))
    for sweep in range(PLACING_SWEEPS):
        for layer in slots if sweep % 2 == 0 else reversed(slots):
            wanted = {}
            for name in layer:
                near = [centres[other] for other in (*above.get(name, ()), *below.get(name, ()))]
                wanted[name] = sum(near) / len(near) if near else centres[name]
            centres.update(_spread(layer, wanted, widths))
    left = min((centre - widths.get(name, 0) / 2 for name, centre in centres.items()), default=0)
    return {name: centre - left + MARGIN for name, centre in centres.items()}


def _spread(
    layer: Sequence[str], wanted: Mapping[str, float], widths: Mapping[str, float]
) -> dict[str, float]:
    """Places in this order, without overlap, as near as can be to the wanted ones: neighbours that would be too
    close stand side by side around the mean of what they want (pool adjacent violators)."""
    offsets, offset = [], 0.0
    for index, name in enumerate(layer):
        if index:
            offset += (widths.get(layer[index - 1], 0) + widths.get(name, 0)) / 2 + GAP_X
        offsets.append(offset)
    pools: list[tuple[float, int]] = []
    for name, offset in zip(layer, offsets, strict=True):
        mean, count = wanted[name] - offset, 1
        while pools and pools[-1][0] > mean:
            other, others = pools.pop()
            mean, count = (mean * count + other * others) / (count + others), count + others
        pools.append((mean, count))
    starts = [mean for mean, count in pools for _ in range(count)]
    return {name: start + offset for name, start, offset in zip(layer, starts, offsets, strict=True)}


def _bounds(
    slots: Sequence[Sequence[str]], sizes: Mapping[str, tuple[float, float]]
) -> tuple[list[float], list[float]]:
    """Where every layer begins and ends, from the top."""
    tops, bottoms, y = [], [], float(MARGIN)
    for layer in slots:
        tops.append(y)
        y += max((sizes[name][1] for name in layer if name in sizes), default=0)
        bottoms.append(y)
        y += GAP_Y
    return tops, bottoms


def _path(
    edge: tuple[str, str, str],
    drawing: Drawing,
    chains: Mapping[Edge, tuple[str, ...]],
    boxes: Mapping[str, Box],
    joints: Mapping[str, tuple[Point, Point]],
) -> tuple[Point, ...]:
    """The points of an arrow, from the border of one box to the border of the other."""
    start, end, kind = edge
    is_up = (start, end) not in chains
    upper, lower = (end, start) if is_up else (start, end)
    is_doubled = kind == "write" and any(
        other == "flow" and {one, two} == {start, end} for one, two, other in drawing.edges
    )
    aside = BESIDE if is_doubled else 0
    above, below = boxes[upper], boxes[lower]
    chain = chains.get((upper, lower), (upper, lower))
    points = (
        (above.x + above.width / 2 + aside, above.y + above.height),
        *((x + aside, y) for joint in chain[1:-1] for x, y in joints[joint]),
        (below.x + below.width / 2 + aside, below.y),
    )
    return tuple(reversed(points)) if is_up else points


def _size(lines: Sequence[str]) -> tuple[float, float]:
    longest = max((len(line) for line in lines), default=0)
    return longest * CHARACTER + 2 * PADDING, len(lines) * LINE + 2 * PADDING - 4
