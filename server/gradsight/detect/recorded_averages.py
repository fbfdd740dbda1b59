"""Averages that are recorded: each step makes a new value of the old one, with a graph that nothing ever differentiates.

    for x, y in loader:
        loss.backward(); optimizer.step()
        average[name] = 0.99 * average[name] + 0.01 * parameter

*Update*: an assignment that makes a value of what its target held before, or a write in place.  *Chain*: the nodes of its
earlier updates that the last one still holds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_flow import LINEAR
from gradsight.detect.naming import value_of_target
from gradsight.detect.path import Path
from gradsight.detect.resets import is_among, is_let_go
from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Edge, Node, Tensor
from gradsight.model.trace import Assigned, Wrote

PASSING = LINEAR | {"lerp", "lerp_", "CopySlices", "clone"}
FEWEST = 2
"""So many updates that hang together are a chain."""


class RecordedAverages:
    """Hears of updates inside loops, and looks at the end at what they hold."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.updates: dict[Any, list[tuple[Site, Tensor]]] = {}

    concerning = (ast.BinOp, ast.Call)

    def on_assigned(self, fact: Assigned) -> None:
        node = fact.statement
        site = self.path.site(node) if self.path.grad_mode else None
        if (
            site is not None
            and len(site.loops) > 0
            and remembered(node, "reads its target", reads_its_target)
        ):
            self.note(value_of_target(self.path, node.targets[0]), site)

    def on_wrote(self, fact: Wrote) -> None:
        if any(other.requires_grad is True for other in fact.others):
            self.note(fact.tensor, fact.site)

    def note(self, value: Any, site: Site) -> None:
        if isinstance(value, Tensor) and value.shape != () and site.loops and self.path.grad_mode:
            self.updates.setdefault(site.key, []).append((site, value))

    def finish(self) -> None:
        for updates in self.updates.values():
            # One loop may be executed several times, to train and to validate: the last update of each time.
            lasts = {site.loops[-1][0]: (site, last) for site, last in updates}
            for site, last in reversed(lasts.values()):
                if len(updates) >= FEWEST and last.needs_grad() is True and last.node is not None:
                    if self.conclude(site, last.node):
                        break

    def conclude(self, site: Site, node: Node) -> bool:
        chain = list(chained(node))
        place = place_of(site)
        if place is None or is_let_go(place, site):
            return False
        for loop, _ in site.loops:
            rounds = {dict(node.site.loops).get(loop) for node in chain} - {None}
            if len(rounds) >= FEWEST and rounds <= self.rounds_with_backward(loop):
                steps = [
                    Step("needed", run.site, "the step's own `backward()` does not go through it")
                    for run in self.path.backwards[-1:]
                ]
                self.claims.add(
                    "graph-kept-alive",
                    site,
                    [*steps, *self.path.call_steps(site)],
                    target=ast.unparse(place),
                    updates=True,
                )
                return True
        return False

    def rounds_with_backward(self, loop: Any) -> set[Any]:
        return {dict(run.site.loops).get(loop) for run in self.path.backwards}


def reads_its_target(node: ast.Assign) -> bool:
    return len(node.targets) == 1 and is_among(syntax_parts(node.value), node.targets[0])


def place_of(site: Site) -> ast.expr | None:
    """What an update changes; None where a library does it for the statement."""
    node = site.node
    if isinstance(node, ast.Assign):
        return node.targets[0]
    if isinstance(node, ast.AugAssign):
        return node.target
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node if isinstance(node, ast.expr) else None


def chained(start: Node) -> Iterator[Node]:
    """The nodes that a value is a sum or multiple of, as far as no backward has gone through them."""
    todo: list[Edge] = [start]
    seen: set[Node] = set()
    while todo:
        edge = todo.pop()
        if isinstance(edge, Node) and edge not in seen and edge.walked is None:
            seen.add(edge)
            yield edge
            if edge.op in PASSING:
                todo.extend(edge.inputs)
