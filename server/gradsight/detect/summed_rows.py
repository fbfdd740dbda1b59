"""Sums that are written by row numbers of which some come several times: `grid[cell] += feature`.

Python reads the rows, adds, and writes them back: of the values that one row gets, only one stays.  Row numbers come several
times where they were drawn, counted off a grid, or chosen as the nearest of a few; a permutation, a sorting and what
`nonzero` or `unique` gives name each row once.
"""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import restated, statement_around
from gradsight.interp.tensors.shapes import numel
from gradsight.model.events import Step
from gradsight.model.tensors import Tensor
from gradsight.model.trace import RowsWritten
from gradsight.model.values import tensors_in

DRAWN = {
    "randint",
    "randint_like",
    "argmin",
    "argmax",
    "bucketize",
    "searchsorted",
    "repeat_interleave",
    "floor_divide",
}
CASTS = {"long", "int", "to", "type"}
ROUNDING = {"floor", "ceil", "round", "trunc", "clamp", "clip", "mul", "div"}


class SummedRows:
    """Hears of every write by row numbers."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_rows_written(self, fact: RowsWritten) -> None:
        statement = statement_around(fact.node, self.path.frame) or fact.node
        if not isinstance(restated(statement), (ast.Add, ast.Sub)):
            return
        if not self.path.grad_mode or not any(one.needs_grad() is True for one in tensors_in(fact.value)):
            return
        if not (has_more_than_rows(fact.rows, fact.tensor) or may_repeat(fact.rows.site.node)):
            return
        site = self.path.site(statement)
        steps = [Step("made", fact.rows.site, "one row number can come several times")]
        self.claims.add(
            "alias-read-after-write",
            site,
            [*steps, *self.path.call_steps(site)],
            how="rows",
            target=self.path.text_of_target(site),
        )


def has_more_than_rows(index: Tensor, target: Tensor) -> bool:
    count, shape = numel(index.shape), target.shape
    rows = shape[0] if shape else None
    return isinstance(count, int) and isinstance(rows, int) and count > rows


def may_repeat(node: ast.AST) -> bool:
    """Whether an expression gives row numbers of which some are the same."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.FloorDiv, ast.Mod))
    if not isinstance(node, ast.Call):
        return False
    name = called(node)
    if name in CASTS and isinstance(node.func, ast.Attribute):
        inner = node.func.value
        return isinstance(inner, ast.BinOp) or (isinstance(inner, ast.Call) and called(inner) in ROUNDING)
    return name in DRAWN


def called(call: ast.Call) -> str:
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
