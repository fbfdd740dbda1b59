"""Cuts that are made in some rounds of a loop only: `if epoch < warm_up: features = features.detach()`."""

from __future__ import annotations

import ast

from gradsight.interp.syntax import conditions_around, named_last
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.sites import Frame, Site

SMALLER = (ast.Lt, ast.LtE)
GREATER = (ast.Gt, ast.GtE)


def belongs_to_an_early_phase(site: Site, step: Site | None = None) -> bool:
    """Whether a place in a loop lies under a condition that holds in its first rounds, or in some of all of them.

    A condition around the step too is none: whenever it steps, the cut is there.
    """
    if not site.loops:
        return False
    for condition in conditions_around(site.node, site.frame):
        if step is not None and any(inner is step.node for inner in syntax_parts(condition)):
            continue
        if isinstance(condition, (ast.If, ast.IfExp)):
            body = condition.body if isinstance(condition.body, list) else [condition.body]
            inside = any(inner is site.node for part in body for inner in syntax_parts(part))
            if is_early(condition.test, inside) or is_given_early(condition.test, inside, site.frame):
                return True
    return any(is_early(argument, False) for argument in arguments_of_modes(site))


def is_early(test: ast.AST, outcome: bool) -> bool:
    """Whether a test has this outcome early: `epoch < 5`, `step % 10 == 0`.

    What is asked of a tensor (`x.dim() > 2`, `x.shape[0] > 1`) is no count.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_early(test.operand, not outcome)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    sides = (test.left, test.comparators[0])
    if any(isinstance(inner, (ast.Call, ast.Subscript)) for side in sides for inner in syntax_parts(side)):
        return False
    if any(isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mod) for side in sides):
        return True
    if not isinstance(test.ops[0], (*SMALLER, *GREATER)):
        return False
    smaller = isinstance(test.ops[0], SMALLER) != isinstance(test.left, ast.Constant)
    return smaller == outcome


def is_given_early(test: ast.AST, outcome: bool, frame: Frame) -> bool:
    """Whether the condition is an argument for which the caller gives such a test: `model(x, warm=step < 5)`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_given_early(test.operand, not outcome, frame)
    call = frame.call_site.node if frame.call_site is not None else None
    if not isinstance(call, ast.Call) or frame.function is None or not isinstance(test, ast.Name):
        return False
    parameters = {
        argument.arg for argument in syntax_parts(frame.function.node) if isinstance(argument, ast.arg)
    }
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == test.id)]
    return test.id in parameters and any(is_early(value, outcome) for value in given)


def arguments_of_modes(site: Site) -> list[ast.expr]:
    """What `with torch.set_grad_enabled(...)` is given around a place."""
    function = site.frame.function
    body = [function.node] if function is not None else site.frame.unit.tree
    return [
        argument
        for part in body
        for block in syntax_parts(part)
        if isinstance(block, ast.With) and any(inner is site.node for inner in syntax_parts(block))
        for item in block.items
        if isinstance(item.context_expr, ast.Call)
        for argument in item.context_expr.args
    ]


def makes_room_for_another_loss(clear: Site, filled: Site) -> bool:
    """Whether the next backward in the block of a clear is not the one whose gradients are cleared: another loss is next."""
    function = clear.frame.function
    for node in syntax_parts(function.node) if function is not None else ():
        blocks = [getattr(node, "body", None), getattr(node, "orelse", None)]
        for block in (one for one in blocks if isinstance(one, list)):
            places = [_simple(statement) is clear.node for statement in block]
            if True in places:
                later = [
                    call
                    for statement in block[places.index(True) + 1 :]
                    for call in syntax_parts(statement)
                    if isinstance(call, ast.Call) and named_last(call.func) == "backward"
                ]
                return bool(later) and later[0] is not filled.node
    return False


def _simple(statement: ast.AST) -> ast.AST:
    return statement.value if isinstance(statement, ast.Expr) else statement
