"""Writes into copies that nobody reads: `weight[rows].mul_(0.9)` with row numbers, `p.clone().clamp_(-1, 1)`.

Indexing with numbers or a mask copies, and so does `clone`: what is written into the copy is lost with it, also where the copy has
a name that is only ever written.
"""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.ignored_results import is_executed_for_itself
from gradsight.detect.path import Path
from gradsight.interp.syntax import names_library, remembered, statement_around
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Step
from gradsight.model.sites import Frame
from gradsight.model.tensors import Tensor
from gradsight.model.trace import ResultDropped, Wrote

COPYING = {"clone", "index_select", "masked_select", "gather", "take", "repeat", "tile"}
MAKES_COPY = COPYING - {"clone"} | {"index", "cat", "stack", "parameters_to_vector"}
"""Under a name: who writes `copy = weight.clone()` knows that it is one."""
SETTING = {"requires_grad_", "retain_grad", "share_memory_", "detach_"}


class LostWrites:
    """In-place statements on what dies with them."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_result_dropped(self, fact: ResultDropped) -> None:
        """`copy().write_()` as a statement."""
        call, result = fact.call, fact.result
        function = call.func
        if (
            not isinstance(function, ast.Attribute)
            or not function.attr.endswith("_")
            or function.attr in SETTING
        ):
            return
        made = function.value
        if isinstance(made, ast.Call):
            is_copy = isinstance(made.func, ast.Attribute) and made.func.attr in COPYING
            if not is_copy or names_library(getattr(made.func, "value", made), self.path.frame.scope):
                return
        elif not isinstance(made, ast.Subscript):
            return
        if owns_memory(result) and result.site.node is made and not self.path.frame.unit.library:
            site = self.path.site(call)
            if not is_executed_for_itself(site):
                self.claims.add(
                    "write-lost",
                    site,
                    self.path.call_steps(site),
                    source=ast.unparse(made),
                    method=function.attr,
                )

    def on_wrote(self, fact: Wrote) -> None:
        """`flat = parameters_to_vector(weights)`, and then `flat` is written and never read."""
        frame, tensor = self.path.frame, fact.tensor
        if fact.write.mode in ("optimizer", "accumulate") or frame.unit.library or not owns_memory(tensor):
            return
        node = fact.site.node
        statement = statement_around(node, frame) if fact.site.frame is frame else None
        name = written_by(statement)
        if not name or name.startswith("_") or frame.namespace.get(name) is not tensor:
            return
        maker = tensor.site.node
        if tensor.site.frame is frame and maker_of(maker) in MAKES_COPY and is_only_written(frame, name):
            steps = [Step("made", tensor.site, "a copy is made here"), *self.path.call_steps(fact.site)]
            self.claims.add("write-lost", fact.site, steps, source=name, method="")


def owns_memory(tensor: Tensor) -> bool:
    """Whether a tensor's memory was certainly made with it, and nothing else was made on it first."""
    return (
        tensor.base is None and tensor.source is None and tensor.storage.serial == tensor.serial + 1 and tensor.kept_at is None
        and not tensor.is_parameter
    )  # fmt: skip


def maker_of(node: ast.AST) -> str:
    if isinstance(node, ast.Subscript):
        return "index"
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def written_by(statement: ast.AST | None) -> str:
    """The name that a statement writes in place and does nothing else with."""
    target: ast.AST | None = None
    if isinstance(statement, ast.AugAssign):
        target = statement.target
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if (
            isinstance(function, ast.Attribute)
            and function.attr.endswith("_")
            and function.attr not in SETTING
        ):
            target = function.value
    return target.id if isinstance(target, ast.Name) else ""


def is_only_written(frame: Frame, name: str) -> bool:
    """Whether a name of the running function or unit is bound there, and read by nothing but what writes it."""
    body = frame.unit.tree if frame.function is None else [frame.function.node]
    bound, loads, own = 0, 0, 0
    for part in body:
        counts = remembered(part, "names_only_written", _names_only_written).get(name)
        if counts is not None:
            bound, loads, own = bound + counts[0], loads + counts[1], own + counts[2]
    return bound > 0 and loads == own


def _names_only_written(root: ast.AST) -> dict[str, tuple[int, int, int]]:
    """Of each name: how often it is bound, read, and read by statements that write it."""
    counts: dict[str, list[int]] = {}
    for node in ast.walk(root):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    counts.setdefault(target.id, [0, 0, 0])[0] += 1
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            counts.setdefault(node.id, [0, 0, 0])[1] += 1
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            for name in node.names:
                counts.setdefault(name, [0, 0, 0])[1] += 1
        name = written_by(node)
        if name:
            reads = [one for one in syntax_parts(node) if isinstance(one, ast.Name) and one.id == name]
            counts.setdefault(name, [0, 0, 0])[2] += sum(isinstance(one.ctx, ast.Load) for one in reads)
    return {name: (one[0], one[1], one[2]) for name, one in counts.items()}
