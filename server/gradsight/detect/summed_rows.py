"""Values that are written by row numbers of which some come several times: `grid[cell] += feature`, `grid.scatter(0, cell, feature)`.

Python reads the rows, adds, and writes them back: of the values that one row gets, only one stays.  Row numbers come several
times where they were drawn, counted off a grid, or chosen as the nearest of a few; a permutation, a sorting and what
`nonzero` or `unique` gives name each row once.  Where values are set and nothing is added, only row numbers that are known
to come several times count: they are written out, or `scatter` is given more of them than there are rows.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import restated, statement_around
from gradsight.model.events import Step
from gradsight.model.tensors import PartOf, Tensor
from gradsight.model.trace import RowsWritten, Used
from gradsight.model.values import Seq, tensors_in

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
SETTING = {"index_put", "scatter"}
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
        if is_sum:
            is_several = repeats_itself(fact.rows) or has_more_than_rows(fact.rows, fact.tensor)
            is_several = is_several or (fact.rows.site is not None and may_repeat(fact.rows.site.node))
        else:
            is_several = repeats_itself(fact.rows) and gives_each_its_own(fact.value, fact.rows)
        if is_several:
            self.conclude(fact.rows, fact.value, statement, "index_add")

    def on_used(self, fact: Used) -> None:
        """`grid.index_put_((cell,), feature)` and `grid.scatter(0, cell, feature)` set each row to one of its values."""
        if not isinstance(fact.node, ast.Call) or called(fact.node).rstrip("_") not in SETTING:
            return
        given = fact.arguments
        target, value = given.get("self"), given.get("values", given.get("src"))
        rows, dim = given.get("index"), given.get("dim")
        indices = given.get("indices")
        if isinstance(indices, Seq) and len(indices.items) == 1:
            rows, dim = indices.items[0], 0
        if not isinstance(rows, Tensor) or not isinstance(target, Tensor) or not isinstance(dim, int):
            return
        if given.get("accumulate") not in (None, False) or given.get("reduce") is not None:
            return
        if gives_each_its_own(value, rows) and (
            repeats_itself(rows) or has_more_than_rows(rows, target, dim)
        ):
            instead = "scatter_add" if indices is None else "accumulate=True"
            self.conclude(rows, value, fact.node, instead)

    def conclude(self, rows: Tensor | Seq, value: Any, node: ast.AST, instead: str) -> None:
        if not self.path.grad_mode or not any(one.needs_grad() is True for one in tensors_in(value)):
            return
        site = self.path.site(node)
        steps = [Step("made", rows.site, "one row number can come several times")] if rows.site else []
        self.claims.add(
            "alias-read-after-write",
            site,
            [*steps, *self.path.call_steps(site)],
            how="rows",
            target=self.path.text_of_target(site),
            instead=instead,
        )


def has_more_than_rows(index: Tensor | Seq, target: Tensor, dim: int = 0) -> bool:
    """Whether there are more row numbers than rows."""
    shape = target.shape
    if not shape or not -len(shape) <= dim < len(shape):
        return False
    rows, numbers = shape[dim], count_of(index, dim)
    return isinstance(numbers, int) and isinstance(rows, int) and numbers > rows


def count_of(index: Tensor | Seq, dim: int = 0) -> Any:
    """How many row numbers there are along a dimension."""
    if isinstance(index, Seq):
        return len(index.items) if index.exact else None
    return index.shape[dim] if index.shape and -len(index.shape) <= dim < len(index.shape) else None


def gives_each_its_own(value: Any, rows: Tensor | Seq) -> bool:
    """Whether each row number is given a value of its own; one that is expanded, or broadcast, may come twice."""
    if not isinstance(value, Tensor) or value.overlapping or not value.shape:
        return False
    count = count_of(rows)
    return isinstance(count, int) and count > 1 and value.shape[0] == count


def repeats_itself(index: Tensor | Seq) -> bool:
    """Whether row numbers are written out, `torch.tensor([[0, 1, 2], [1, 1, 0]])`, and one of them comes twice."""
    if isinstance(index, Seq):
        return index.exact and names_one_twice(index.items)
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
    return isinstance(rows, list) and names_one_twice(rows)


def names_one_twice(rows: list[Any]) -> bool:
    return all(type(row) is int for row in rows) and len(set(rows)) < len(rows)


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
