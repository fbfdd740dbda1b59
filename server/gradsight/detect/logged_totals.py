"""Totals that are only shown: a backward goes through one of their terms, and through the others none does.

`total = fit + 0.1 * penalty; log(total.item()); return fit`, and the caller's backward goes through `fit`: what stands in the
log is not what is trained.
"""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.gradient_flow import nodes_behind
from gradsight.detect.path import Path
from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import parts_of, sorted_parts
from gradsight.model.events import Step
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Node, Tensor, leaves_of
from gradsight.model.trace import Assigned, Backward, Stepped

MOST_TOTALS = 100
SHOWING = {"item", "tolist"}
DETACHING = {"detach", "data"}
"""What is detached may be a factor or a target of another loss: it is shown where a call that is made for its own sake gets it."""
SHOWERS = {"float", "print", "str"}


class Total:
    """A sum of single numbers under a name that is only shown, and the backward through one of its terms."""

    __slots__ = ("backward", "is_passed_by", "left_out", "name", "node", "site")

    def __init__(self, name: str, node: Node, site: Site) -> None:
        self.name = name
        self.node = node
        self.site = site
        self.backward: Site | None = None
        self.left_out: set[Node] = set()
        self.is_passed_by = False
        """Whether a step has moved what its other terms were computed from."""


class LoggedTotals:
    """Remembers such sums; concludes when an optimizer moves what the terms left out were computed from."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.totals: list[Total] = []

    concerning = (ast.BinOp,)

    @staticmethod
    def concerned_by(statement: ast.Assign) -> bool:
        is_one_name = len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)
        return (
            is_one_name and isinstance(statement.value, ast.BinOp) and isinstance(statement.value.op, ast.Add)
        )

    def on_assigned(self, fact: Assigned) -> None:
        target = fact.statement.targets[0]
        frame = self.path.frame
        if not isinstance(target, ast.Name) or frame.unit.library or len(self.totals) > MOST_TOTALS:
            return
        value = frame.namespace.get(target.id)
        if not isinstance(value, Tensor) or value.shape not in ((), None) or value.node is None:
            return
        if value.needs_grad() is True and is_only_shown(frame, target.id):
            self.totals.append(Total(target.id, value.node, self.path.site(fact.statement)))

    def on_backward(self, fact: Backward) -> None:
        ended, differentiated = fact.run.site, fact.run.loss.node
        for total in self.totals:
            if total.backward is None and total.node.walked is None:
                behind = nodes_behind(total.node)
                if differentiated in behind:
                    total.backward = ended
                    total.left_out = behind - nodes_behind(differentiated)

    def on_stepped(self, fact: Stepped) -> None:
        waiting = [total for total in self.totals if total.left_out and not total.is_passed_by]
        if waiting:
            moved = set(self.path.parameters_of(fact.optimizer))
            for total in waiting:
                total.is_passed_by = bool(leaves_of(list(total.left_out)) & moved)

    def finish(self) -> None:
        for total in self.totals:
            if total.is_passed_by and total.backward is not None and total.node.walked is None:
                if any(node.walked is not None for node in total.left_out):
                    continue
                steps = [
                    Step("needed", total.backward, "this backward comes through one of its terms only"),
                    *self.path.call_steps(total.site),
                ]
                self.claims.add("term-unused", total.site, steps, target=total.name, shown=True)


def is_only_shown(frame: Frame, name: str) -> bool:
    """Whether all that is read of a name of the running function, or of the unit, is a number to look at."""
    body = frame.unit.tree if frame.function is None else [frame.function.node]
    read = shown = 0
    for part in body:
        all_of_it, to_look_at = remembered(part, "names_shown", _names_shown)
        read += all_of_it.get(name, 0)
        shown += to_look_at.get(name, 0)
    return read == shown > 0


def _names_shown(root: ast.AST) -> tuple[dict[str, int], dict[str, int]]:
    """How often each name is read, and how often only to be shown."""
    read: dict[str, int] = {}
    shown: dict[str, int] = {}
    parts = sorted_parts(root)
    told = {
        part
        for one in parts.get(ast.Expr, ())
        if isinstance(one.value, ast.Call)
        for part in parts_of(one.value, ast.Attribute)
    }
    for name in parts.get(ast.Name, ()):
        if isinstance(name.ctx, ast.Load):
            read[name.id] = read.get(name.id, 0) + 1
    looked_at: list[ast.AST] = [
        node.value
        for node in parts.get(ast.Attribute, ())
        if node.attr in SHOWING or (node.attr in DETACHING and node in told)
    ]
    looked_at += [node.value for node in parts.get(ast.FormattedValue, ())]
    looked_at += [
        node.args[0]
        for node in parts.get(ast.Call, ())
        if isinstance(node.func, ast.Name) and node.func.id in SHOWERS and len(node.args) == 1
    ]
    for value in looked_at:
        if isinstance(value, ast.Name):
            shown[value.id] = shown.get(value.id, 0) + 1
    for node in (*parts.get(ast.Nonlocal, ()), *parts.get(ast.Global, ())):
        read.update(dict.fromkeys(node.names, -1))
    return read, shown
