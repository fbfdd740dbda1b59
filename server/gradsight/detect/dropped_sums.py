"""Sums of losses that are overwritten before anybody has differentiated them: `loss = …` where `loss += …` was meant.

What was added up under a name (`loss += fit`), or is bound in each iteration to a name that began as zero, is lost when the name is
bound again.  The last value goes on; the others are never differentiated.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.changed_data import loops_around
from gradsight.detect.claims import Claims
from gradsight.detect.gradient_flow import nodes_behind
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Node, Tensor, leaves_of
from gradsight.model.trace import Assigned, Augmented

MOST = 100


class Sum:
    """A single number of the graph under a name."""

    __slots__ = ("frame", "is_sum", "node", "site")

    def __init__(self, frame: Frame, node: Node, site: Site, is_sum: bool) -> None:
        self.frame = frame
        self.node = node
        self.site = site
        self.is_sum = is_sum


class DroppedSums:
    """Remembers such names, and looks at the end whether what took their place was differentiated alone."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.zeros: set[tuple[int, str]] = set()
        """Names that began as zero, with the number of their frame."""
        self.held: dict[tuple[int, str], Sum] = {}
        self.dropped: list[tuple[Sum, Node, Site, str]] = []

    @staticmethod
    def concerned_by(statement: ast.Assign) -> bool:
        return len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)

    def on_augmented(self, fact: Augmented) -> None:
        target = fact.statement.target
        if isinstance(target, ast.Name) and isinstance(fact.statement.op, (ast.Add, ast.Sub)):
            self.watch(target.id, fact.result, fact.statement, is_sum=True)

    def on_assigned(self, fact: Assigned) -> None:
        target = fact.statement.targets[0]
        frame = self.path.frame
        if not isinstance(target, ast.Name) or frame.unit.library or self.path.assuming:
            return
        name, value = target.id, frame.namespace.get(target.id)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not value:
            self.zeros.add((id(frame), name))
        known = self.held.pop((id(frame), name), None)
        if known is not None and known.frame is frame:
            self.overwritten(known, value, fact.statement, name)
        if (id(frame), name) in self.zeros and loops_around(fact.statement, frame):
            self.watch(name, value, fact.statement, is_sum=False)

    def watch(self, name: str, value: Any, statement: ast.AST, is_sum: bool) -> None:
        frame: Frame = self.path.frame
        if (
            type(value) is not Tensor
            or value.shape != ()
            or value.node is None
            or value.needs_grad() is not True
        ):
            return
        if len(self.held) < MOST:
            self.held[id(frame), name] = Sum(frame, value.node, self.path.site(statement), is_sum)

    def overwritten(self, known: Sum, value: Any, statement: ast.AST, name: str) -> None:
        """The name is bound again: to a number of the graph that has nothing of the old one in it."""
        if type(value) is not Tensor or value.node is None or value.shape != () or len(self.dropped) > MOST:
            return
        if known.node not in nodes_behind(value.node):
            self.dropped.append((known, value.node, self.path.site(statement), name))

    def finish(self) -> None:
        told = {event.place for event in self.claims.events if event.kind == "result-lost"}
        lines = {(place.path, getattr(place, "line", 0)) for place in told}
        for known, node, site, name in self.dropped:
            if known.node.walked is not None or node.walked is None or (site.path, site.line) in lines:
                continue
            trained = {leaf for leaf in leaves_of([known.node]) if leaf.is_parameter}
            if trained if known.is_sum else trained - leaves_of([node]):
                steps = [
                    Step("made", known.site, "what was computed here is lost"),
                    Step("needed", node.walked, "this backward"),
                    *self.path.call_steps(site),
                ]
                self.claims.add("term-unused", site, steps, target=name, overwritten=True)
