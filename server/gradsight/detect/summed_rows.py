"""Sums that are written by row numbers of which some come several times: `grid[cell] += feature`.

Python reads the rows, adds, and writes them back: of the values that one row gets, only one stays.  Row numbers come several
times where they were drawn, counted off a grid, or chosen as the nearest of a few; a permutation, a sorting and what
`nonzero` or `unique` gives name each row once.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import restated, statement_around
from gradsight.interp.tensors.shapes import numel
from gradsight.model.events import Step
from gradsight.model.tensors import PartOf, Tensor
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
WRITTEN_OUT = {"tensor", "LongTensor", "as_tensor"}
CASTS = {"long", "int", "to", "type"}
ROUNDING = {"floor", "ceil", "round", "trunc", "clamp", "clip", "mul", "div"}


class SummedRows:
    """Hears of every write by row numbers."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_rows_written(self, fact: RowsWritten) -> None:
        statement = statement_around(fact.node, self.path.frame) or fact.node
        is_sum = isinstance(restated(statement), (ast.Add, ast.Sub))
        if not is_sum and not (gives_each_its_own(fact.value, fact.rows) and repeats_itself(fact.rows)):
            return
        if not self.path.grad_mode or not any(one.needs_grad() is True for one in tensors_in(fact.value)):
            return
        if not (
            has_more_than_rows(fact.rows, fact.tensor)
            or may_repeat(fact.rows.site.node)
            or repeats_itself(fact.rows)
        ):
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


def gives_each_its_own(value: Any, rows: Tensor) -> bool:
    """Whether each row number is given a value of its own; one that is expanded, or broadcast, may come twice."""
    if not isinstance(value, Tensor) or value.overlapping or not value.shape:
        return False
    count = numel(rows.shape)
    return isinstance(count, int) and count > 1 and value.shape[0] == count


def repeats_itself(index: Tensor) -> bool:
    """Whether row numbers are written out, `torch.tensor([[0, 1, 2], [1, 1, 0]])`, and one of them comes twice."""
    call = index.root().site.node
    if not isinstance(call, ast.Call) or called(call) not in WRITTEN_OUT or len(call.args) != 1:
        return False
    try:
        rows = ast.literal_eval(call.args[0])
    except (ValueError, SyntaxError):
        return False
    if index.region is not None:
        if not isinstance(index.region, PartOf) or not isinstance(rows, list):
            return False
        rows = rows[index.region.number] if index.region.number < len(rows) else []
    return isinstance(rows, list) and all(type(row) is int for row in rows) and len(set(rows)) < len(rows)


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
