"""Terms that were to be part of a loss: scalars with a graph that are given a name, and the name is never read.

`grad_penalty = penalty(critic, mixed)` and then `loss = fake.mean() - real.mean(); loss.backward(); optimizer.step()`: the step
moves what the penalty was computed from, and no backward has come through it.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import names_read
from gradsight.model.events import Step
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Node, Tensor, leaves_of
from gradsight.model.trace import Assigned, Backward, NameRead, Stepped, Walked

MOST_TERMS = 200


class UnusedTerm:
    """A scalar under a name that nothing reads."""

    __slots__ = ("backward", "is_passed_by", "name", "node", "site", "tensor")

    def __init__(self, name: str, tensor: Tensor, node: Node, site: Site) -> None:
        self.name = name
        self.tensor = tensor
        self.node = node
        self.site = site
        self.backward: Site | None = None
        self.is_passed_by = False
        """Whether a step has moved what it was computed from."""


class UnusedTerms:
    """Remembers such scalars; concludes when an optimizer moves what they were computed from."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.terms: dict[Node, UnusedTerm] = {}
        self.read: set[Any] = set()
        """Places whose name was read on this path after all."""

    concerning = (ast.Call, ast.BinOp)

    @staticmethod
    def concerned_by(statement: ast.Assign) -> bool:
        target = statement.targets[0]
        return len(statement.targets) == 1 and isinstance(target, ast.Name) and not target.id.startswith("_")

    def on_assigned(self, fact: Assigned) -> None:
        statement = fact.statement
        target = statement.targets[0]
        if not isinstance(target, ast.Name):
            return
        frame = self.path.frame
        value = frame.namespace.get(target.id)
        if not isinstance(value, Tensor) or value.shape != () or value.node is None:
            return
        if value.needs_grad() is not True or frame.unit.library or len(self.terms) > MOST_TERMS:
            return
        if is_read_in(frame, target.id):
            return
        self.terms[value.node] = UnusedTerm(target.id, value, value.node, self.path.site(statement))
        if frame.function is None:
            frame.watched = {**(frame.watched or {}), target.id: self.terms[value.node]}

    def on_name_read(self, fact: NameRead) -> None:
        watched = self.path.frame.watched
        term = watched.get(fact.name) if watched is not None else None
        if isinstance(term, UnusedTerm):
            self.read.add(term.site.key)

    def on_walked(self, fact: Walked) -> None:
        for node in fact.nodes if self.terms else ():
            self.terms.pop(node, None)

    def on_backward(self, fact: Backward) -> None:
        for term in self.terms.values():
            # Who computes gradients by hand, or leaves them to a caller, may compute a loss to look at it.
            is_near = fact.run.site.frame is term.site.frame
            if term.backward is None and is_near and fact.run.leaves & leaves_behind(term):
                term.backward = fact.run.site

    def on_stepped(self, fact: Stepped) -> None:
        moved = set(self.path.parameters_of(fact.optimizer)) if self.terms else set()
        for term in self.terms.values():
            if term.backward is not None and leaves_behind(term) & moved:
                term.is_passed_by = True

    def finish(self) -> None:
        for term in self.terms.values():
            if term.is_passed_by and term.backward is not None and term.site.key not in self.read:
                steps = [
                    Step("needed", term.backward, "this backward does not come through it"),
                    *self.path.call_steps(term.site),
                ]
                self.claims.add("term-unused", term.site, steps, target=term.name)


def leaves_behind(term: UnusedTerm) -> set[Tensor]:
    edge = term.tensor.edge()
    return leaves_of([edge]) if edge is not None else set()


def is_read_in(frame: Frame, name: str) -> bool:
    """Whether the running function, or the unit, reads a name; what it declares as shared may be read anywhere."""
    if frame.function is None:
        return any(name in names_read(statement) for statement in frame.unit.tree)
    body = frame.function.node
    if frame.global_names is not None and name in frame.global_names:
        return True
    return name in names_read(body) or any(
        isinstance(inner, (ast.Nonlocal, ast.Global)) and name in inner.names for inner in ast.walk(body)
    )
