"""Results of pure tensor methods that nobody uses: `x.clamp(min=0)` as a statement."""

from __future__ import annotations

import ast

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import names_library, names_read
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.sites import Site
from gradsight.model.tensors import Maybe
from gradsight.model.trace import ResultDropped
from gradsight.model.values import Scope, Unknown

PURE_EXCEPTIONS = {
    "backward", "requires_grad_", "retain_grad", "register_hook", "share_memory_", "pin_memory", "register_post_accumulate_grad_hook",
}  # fmt: skip

MOVING = {"to", "cuda", "cpu", "float", "double", "half", "bfloat16", "type"}
"""What tensors and modules have; on a module it needs no name for its result."""
OF_OTHERS = {"log", "add"}
"""What tensors have, and what any object that keeps something may have."""


class IgnoredResults:
    """A statement that computes a tensor and drops it."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims

    def on_result_dropped(self, fact: ResultDropped) -> None:
        node, result = fact.call, fact.result
        function = node.func
        if (
            not isinstance(function, ast.Attribute)
            or function.attr in PURE_EXCEPTIONS
            or function.attr.endswith("_")
        ):
            return
        known = self.path.table.find(f"Tensor.{function.attr}")
        if (
            known is None
            or any(case.writes for case in known.cases)
            or (node.keywords and any(k.arg == "out" for k in node.keywords))
        ):
            return
        if result.site.node is not node and function.attr not in ("to", "contiguous", "float", "double"):
            return
        if names_library(function.value, self.path.frame.scope):
            return
        if function.attr in MOVING and (
            isinstance(result.requires_grad, Maybe)
            or is_of_unknown_code(function.value, self.path.frame.scope)
        ):
            # A module is moved itself.
            return
        if is_of_unknown_code(function.value, self.path.frame.scope) and (
            function.attr in OF_OTHERS
            or any(is_text(argument) for argument in node.args)
            # What is not known to bring a graph may be no tensor at all: `transaction.put(key, value)`.
            or result.requires_grad is False
            or (isinstance(result.requires_grad, Maybe) and result.requires_grad.weak)
        ):
            return
        if result.site.node is node and not is_executed_for_itself(self.path.site(node)):
            self.claims.add(
                "result-ignored",
                self.path.site(node),
                [],
                method=function.attr,
                target=self.path.text_of_target(self.path.site(node)),
            )


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_of_unknown_code(node: ast.expr, scope: Scope | None) -> bool:
    """Whether a name holds what unknown code returned, of which only its use tells what it is."""
    if not isinstance(node, ast.Name):
        return False
    while scope is not None and node.id not in scope.names:
        scope = scope.outer
    return scope is not None and isinstance(scope.names[node.id], Unknown)


def is_executed_for_itself(site: Site) -> bool:
    """Whether a statement is there to be executed: its error is waited for, or its time is taken.

    A loop that does nothing but call, and does not use what it runs over, repeats the same work: it is timed.
    """
    if site.expected:
        return True
    loop = site.loops[-1][0].node if site.loops else None
    if not isinstance(loop, ast.For) or not any(inner is site.node for inner in syntax_parts(loop)):
        return False
    counted = {inner.id for inner in syntax_parts(loop.target) if isinstance(inner, ast.Name)}
    return all(
        isinstance(statement, ast.Expr) and not counted & names_read(statement) for statement in loop.body
    )
