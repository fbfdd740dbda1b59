"""A drawing made smaller: what has no part in the fault and only passes a value on is drawn as one box.

Words: a *bystander* is a box without a role; it *passes on* if one arrow comes in and one goes out.  A *run* is a row of
bystanders that pass on, one to the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from gradsight.session.graphs import Drawing, DrawnNode

SHORTEST_RUN = 3
MOST_NAMES = 4
MODULE = re.compile(r"(.+) \(\w+\)$")


def folded(drawing: Drawing) -> Drawing:
    """The drawing with the operators of one module's call as one box, and each run of bystanders as one box."""
    for part in _modules(drawing):
        last = drawing.nodes[part[-1]]
        drawing = _with_one(drawing, part, replace(last, count=len(part)))
    for run in list(_runs(drawing)):
        if len(run) >= SHORTEST_RUN:
            drawing = _with_one(drawing, run, _as_one([drawing.nodes[name] for name in run]))
    return drawing


def _modules(drawing: Drawing) -> list[list[str]]:
    """Where `self.linear (t)` goes into `self.linear (addmm)` and nowhere else: the boxes of such a call, the last one last."""
    starts = [start for start, _, _ in drawing.edges]
    into = {
        start: end
        for start, end, kind in drawing.edges
        if kind == "flow"
        and starts.count(start) == 1
        and _is_one_call(drawing.nodes[start], drawing.nodes[end])
    }
    parts: dict[str, list[str]] = {}
    for start in into:
        end = start
        while end in into:
            end = into[end]
        parts.setdefault(end, []).append(start)
    return [[*inner, end] for end, inner in parts.items()]


def _is_one_call(one: DrawnNode, other: DrawnNode) -> bool:
    module = MODULE.match(one.name)
    is_beside = (one.path, one.line, one.role) == (other.path, other.line, "plain") and other.role == "plain"
    return module is not None and is_beside and other.name.startswith(f"{module.group(1)} (")


def _runs(drawing: Drawing) -> Iterator[list[str]]:
    """The runs of a drawing, each from its first box to its last."""
    below = {start: end for start, end, _ in drawing.edges}
    above = {end: start for start, end, _ in drawing.edges}
    starts = [start for start, _, _ in drawing.edges]
    ends = [end for _, end, _ in drawing.edges]
    passing = {
        name
        for name, node in drawing.nodes.items()
        if node.role == "plain" and starts.count(name) == 1 and ends.count(name) == 1
    }
    for name in drawing.nodes:
        if name in passing and above[name] not in passing:
            run = [name]
            while below[run[-1]] in passing:
                run.append(below[run[-1]])
            yield run


def _as_one(run: list[DrawnNode]) -> DrawnNode:
    """One box for a run: a click leads to its first line, and the tooltip tells them all."""
    first, last = run[0], run[-1]
    names = [node.name for node in run]
    if len(names) > MOST_NAMES:
        names = [names[0], f"{len(names) - 2} more", names[-1]]
    text = first.text.strip()
    if (first.path, first.line) != (last.path, last.line) and last.source:
        text = f"{text} … {last.source}"
    told = "; ".join(f"{node.name} ({node.place or node.line})" if node.line else node.name for node in run)
    count = sum(node.count for node in run)
    return replace(first, name=" → ".join(names), text=text, message=told, count=count)


def _with_one(drawing: Drawing, names: list[str], one: DrawnNode) -> Drawing:
    """The drawing with one box in the place of some; arrows between these are gone, and none is doubled."""
    inside = dict.fromkeys(names, one.id)
    moved = [(inside.get(start, start), inside.get(end, end), kind) for start, end, kind in drawing.edges]
    nodes = {name: one if name == one.id else node for name, node in drawing.nodes.items()}
    nodes = {name: node for name, node in nodes.items() if name == one.id or name not in inside}
    edges = list(dict.fromkeys(edge for edge in moved if edge[0] != edge[1]))
    return replace(drawing, nodes=nodes, edges=edges)
