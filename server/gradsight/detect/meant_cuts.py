"""Cuts of the graph that the text shows to be meant: one of two ways that an option chooses, and what is declared to be a number."""

from __future__ import annotations

import ast

from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.sites import Site

KINDS = frozenset({"path-cut", "term-cut"})
NUMBERS = frozenset({"float", "int", "bool"})


def is_meant(kind: str, site: Site) -> bool:
    """Whether a cut at this place is no oversight."""
    function = site.frame.function
    if kind not in KINDS or function is None:
        return False
    found: frozenset[ast.AST] = remembered(function.node, "meant cuts", _meant_cuts)
    return site.node in found


def _meant_cuts(function: ast.AST) -> frozenset[ast.AST]:
    found: set[ast.AST] = set()
    returns_number = getattr(getattr(function, "returns", None), "id", "") in NUMBERS
    for node in syntax_parts(function):
        if isinstance(node, ast.IfExp):
            for arm, other in ((node.body, node.orelse), (node.orelse, node.body)):
                if _cuts(arm, other):
                    found.add(arm)
        elif isinstance(node, ast.Return) and returns_number and isinstance(node.value, ast.Call):
            found.add(node.value)
    return frozenset(found)


def _cuts(arm: ast.expr, other: ast.expr) -> bool:
    """`x if learn else x.detach()`."""
    receiver = arm.func if isinstance(arm, ast.Call) and not arm.args else arm
    return isinstance(receiver, ast.Attribute) and ast.unparse(receiver.value) == ast.unparse(other)
