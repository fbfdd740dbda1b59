"""Unknown modules that were frozen whole, and of which a part may learn again.

Whoever freezes a model and then turns to a part of it, hands it to unknown code, or goes through its parameters by name
means to train some of it: which, nobody can tell whose parts are not known.
"""

from __future__ import annotations

import ast

from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import parts_of
from gradsight.model.sites import Frame
from gradsight.model.tensors import IGNORANT, Tensor
from gradsight.model.values import Instance, Layer, Value

GOING_THROUGH = frozenset(
    {"parameters", "named_parameters", "modules", "named_modules", "children", "named_children"}
)


def thaw(modules: list[Value]) -> None:
    """Of what these unknown modules hold, nobody knows any more that it needs no gradient."""
    for module in modules:
        weight = module.attributes.get("<parameters>") if isinstance(module, (Layer, Instance)) else None
        if isinstance(weight, Tensor) and weight.requires_grad is False and weight.frozen_at is not None:
            weight.requires_grad, weight.frozen_at = IGNORANT, None


def chooses_what_learns(call: ast.AST, frame: Frame) -> bool:
    """Whether a loop over what a call lists lets some of it require grad: `if "head" in name: p.requires_grad = True`."""
    texts: list[ast.AST] = [frame.function.node] if frame.function is not None else [*frame.unit.tree]
    return any(call in remembered(text, "lists chosen from", _lists_chosen_from) for text in texts)


def _lists_chosen_from(text: ast.AST) -> frozenset[ast.AST]:
    loops = [part for part in parts_of(text, ast.For) if isinstance(part, ast.For)]
    return frozenset(
        call
        for loop in loops
        if any(_lets_learn(statement) for statement in loop.body)
        for call in parts_of(loop.iter, ast.Call)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in GOING_THROUGH
    )


def _lets_learn(statement: ast.AST) -> bool:
    """Whether a statement sets `requires_grad` to anything but False."""
    for part in parts_of(statement, ast.Assign):
        if isinstance(part, ast.Assign) and not _is_false(part.value):
            if any(isinstance(one, ast.Attribute) and one.attr == "requires_grad" for one in part.targets):
                return True
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr == "requires_grad_"
        and not any(_is_false(one) for one in part.args)
        for part in parts_of(statement, ast.Call)
    )


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
