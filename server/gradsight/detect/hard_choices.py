"""Choices that are made hard on the way to a result: `one_hot(softmax(scores).argmax(-1))` where the soft weights go no further.

`argmax` of a softmax is that of the scores.  Who takes the softmax, and gives nothing but the place of its largest value on as
numbers, has weights that nothing teaches.
"""

from __future__ import annotations

import ast

from gradsight.interp.syntax import statement_around
from gradsight.interp.syntax_parts import parts_of
from gradsight.model.sites import Site
from gradsight.model.tensors import Cut, Node

CHOOSING = frozenset(("argmax", "max"))
SOFT = frozenset(("softmax", "log_softmax", "sigmoid", "logsigmoid"))
PASSED_ON = frozenset(
    "to type float double half bfloat16 type_as reshape view permute transpose squeeze unsqueeze contiguous dropout".split()
)


def is_hard_choice(cut: Cut) -> bool:
    """Whether the place of the largest of soft weights goes on as numbers, in a function that does not ask for the mode."""
    if cut.kind != "op" or cut.op.rpartition(".")[2] not in CHOOSING or not is_soft(cut.source.node):
        return False
    return becomes_numbers(cut.site) and not asks_for_the_mode(cut.site)


def is_soft(node: Node | None) -> bool:
    while node is not None and node.op.rpartition(".")[2] in PASSED_ON:
        node = next((edge for edge in node.inputs if isinstance(edge, Node)), None)
    return node is not None and node.op.rpartition(".")[2] in SOFT


def becomes_numbers(site: Site) -> bool:
    """Whether `one_hot` gets the call, or a name that the statement gives to its result."""
    statement, function = statement_around(site.node, site.frame), site.frame.function
    if statement is None or function is None:
        return False
    bound = {target.id for target in getattr(statement, "targets", ()) if isinstance(target, ast.Name)}
    for call in parts_of(function.node, ast.Call):
        if not isinstance(call, ast.Call) or not called(call.func).endswith("one_hot") or not call.args:
            continue
        given = call.args[0]
        if any(part is site.node for part in ast.walk(given)):
            return True
        if (
            isinstance(given, ast.Name)
            and given.id in bound
            and call.lineno > getattr(statement, "lineno", 0)
        ):
            return True
    return False


def asks_for_the_mode(site: Site) -> bool:
    function = site.frame.function
    return function is not None and any(
        isinstance(part, ast.Attribute) and part.attr == "training"
        for part in parts_of(function.node, ast.Attribute)
    )


def called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
