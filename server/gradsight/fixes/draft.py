"""A repair before it is verified, and what its builder is given."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from gradsight.fixes.lines import move_after, move_before
from gradsight.fixes.tree import Patch, Tree
from gradsight.model.finding import Finding, Related, Role
from gradsight.model.fix import Safety


@dataclass(frozen=True, slots=True)
class Draft:
    """One candidate.  `kind` is what the repair does, so that findings with one cause can be repaired alike."""

    kind: str
    title: str
    safety: Safety
    patches: tuple[Patch, ...]

    def unsafe(self) -> Draft:
        return replace(self, safety="unsafe")


def drafts(
    kind: str, title: str, safety: Safety, patches: tuple[Patch, ...] | Patch | None
) -> Iterator[Draft]:
    """One candidate, where its change can be written."""
    if patches is not None:
        yield Draft(kind, title, safety, patches if isinstance(patches, tuple) else (patches,))


def moves(
    kind: str,
    tree: Tree,
    statement: ast.stmt,
    where: Literal["before", "after"],
    anchor: ast.stmt,
    safety: Safety = "unsafe",
) -> Iterator[Draft]:
    """One candidate that moves a statement, where it can be moved."""
    patches = (move_before if where == "before" else move_after)(tree, statement, anchor)
    title = f"move `{shown(tree, statement)}` {where} `{shown(tree, anchor)}`"
    yield from drafts(kind, title, safety, patches)


@dataclass(frozen=True, slots=True)
class FixCase:
    """A finding in its text: the node it speaks of, the statement around it, and all findings of the text."""

    tree: Tree
    finding: Finding
    node: ast.AST
    statement: ast.stmt
    findings: tuple[Finding, ...]

    def word(self, key: str) -> str:
        """A name that the finding speaks of."""
        value = self.finding.data.get(key)
        return value if isinstance(value, str) else ""

    def steps(self, role: Role) -> Iterator[Related]:
        """The steps of the trail with a role, in this file."""
        return (step for step in self.finding.related if step.role == role and step.path == self.finding.path)

    def step_node(self, role: Role) -> ast.AST | None:
        step = next(self.steps(role), None)
        return self.tree.node_at(step.span) if step is not None else None

    def step_statement(self, role: Role) -> ast.stmt | None:
        return self.tree.statement(self.step_node(role))


Drafts = Iterator[Draft]
Builder = Callable[[FixCase], Drafts]


def shown(tree: Tree, node: ast.AST) -> str:
    """A node fit for a title."""
    return short(tree.segment(node))


def short(text: str, most: int = 40) -> str:
    """A piece of code fit for a title: one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
