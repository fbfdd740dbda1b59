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
    named = _assigned_once(function)
    for node in syntax_parts(function):
        if isinstance(node, ast.IfExp):
            for one, another in ((node.body, node.orelse), (node.orelse, node.body)):
                arm, other = (named.get(getattr(each, "id", ""), each) for each in (one, another))
                if _cuts(arm, other):
                    found.add(arm)
        elif isinstance(node, ast.Return) and returns_number and isinstance(node.value, ast.Call):
            found.add(node.value)
    return frozenset(found)


def _assigned_once(function: ast.AST) -> dict[str, ast.expr]:
    """What stands behind the names that a function assigns in one place."""
    found: dict[str, list[ast.expr]] = {}
    for node in syntax_parts(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _cuts(arm: ast.expr, other: ast.expr) -> bool:
    """`x if learn else x.detach()`, be it that the two have names."""
    receiver = arm.func if isinstance(arm, ast.Call) and not arm.args else arm
    return isinstance(receiver, ast.Attribute) and ast.unparse(receiver.value) == ast.unparse(other)
