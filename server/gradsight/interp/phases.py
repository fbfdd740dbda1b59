"""Cuts that are made in some rounds of a loop only: `if epoch < warm_up: features = features.detach()`."""

from __future__ import annotations

import ast

from gradsight.interp.sites import Frame, Site
from gradsight.interp.syntax import conditions_around

ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def belongs_to_a_phase(site: Site) -> bool:
    """Whether a place in a loop lies under a condition on a count, so that other rounds may go another way."""
    if not site.loops:
        return False
    for condition in conditions_around(site.node, site.frame):
        test = getattr(condition, "test", None)
        if isinstance(condition, (ast.If, ast.IfExp)) and test is not None:
            if compares_counts(test) or is_given_comparison(test, site.frame):
                return True
    return any(compares_counts(argument) for argument in arguments_of_modes(site))


def compares_counts(test: ast.AST) -> bool:
    """`epoch < 5`, `step % 10 == 0`; what is asked of a tensor (`x.dim() > 2`, `x.shape[0] > 1`) is no count."""
    return any(
        isinstance(part, ast.Compare)
        and (isinstance(part.ops[0], ORDER) or isinstance(part.left, ast.BinOp))
        and all(
            isinstance(side, (ast.Name, ast.Attribute, ast.Constant, ast.BinOp))
            and not any(isinstance(inner, (ast.Call, ast.Subscript)) for inner in ast.walk(side))
            for side in (part.left, *part.comparators)
        )
        for part in ast.walk(test)
    )


def is_given_comparison(test: ast.AST, frame: Frame) -> bool:
    """Whether the condition is an argument for which the caller gives a comparison: `model(x, warm=step < 5)`."""
    call = frame.call_site.node if frame.call_site is not None else None
    if not isinstance(call, ast.Call) or frame.function is None:
        return False
    names = {inner.id for inner in ast.walk(test) if isinstance(inner, ast.Name)}
    parameters = {argument.arg for argument in ast.walk(frame.function.node) if isinstance(argument, ast.arg)}
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return bool(names & parameters) and any(compares_counts(value) for value in given)


def arguments_of_modes(site: Site) -> list[ast.expr]:
    """What `with torch.set_grad_enabled(...)` is given around a place."""
    function = site.frame.function
    body = [function.node] if function is not None else site.frame.unit.tree
    return [
        argument
        for part in body
        for block in ast.walk(part)
        if isinstance(block, ast.With) and any(inner is site.node for inner in ast.walk(block))
        for item in block.items
        if isinstance(item.context_expr, ast.Call)
        for argument in item.context_expr.args
    ]
