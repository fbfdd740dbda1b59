"""Small changes of one expression: a method put behind it, a method or a call taken away from it."""

from __future__ import annotations

import ast

from gradsight.fixes.tree import Patch, Tree

ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
LOOSE = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Await)

BRACKETING = (ast.BinOp, ast.Attribute, ast.UnaryOp, ast.Assign, ast.Return)
"""What has no brackets of its own: those around its part are the part's."""


def appended(tree: Tree, node: ast.AST, text: str) -> tuple[Patch, ...] | None:
    """A method call put behind an expression, with brackets where it needs them."""
    start, end = tree.start(node), tree.end(node)
    if isinstance(node, ATOMS):
        return (Patch(end, end, text),)
    if not isinstance(node, ast.expr) or isinstance(node, (ast.Starred, ast.Yield, ast.YieldFrom)):
        return None
    if tree.text[start - 1 : start] == "(" and tree.text[end : end + 1] == ")":
        if isinstance(tree.parents.get(node), BRACKETING):
            return (Patch(end + 1, end + 1, text),)
    return tree.between("(", node, ")" + text)


def without_call(tree: Tree, call: ast.Call) -> Patch | None:
    """A call replaced by its first argument: `float(x)` becomes `x`."""
    if not call.args or isinstance(call.args[0], ast.Starred):
        return None
    inner = call.args[0]
    return tree.instead(call, bracketed(tree, call, inner, tree.segment(inner)))


def without_method(tree: Tree, node: ast.AST) -> Patch | None:
    """A method call, or an attribute, replaced by what it is taken of: `x.item()` becomes `x`."""
    attribute = node.func if isinstance(node, ast.Call) else node
    if not isinstance(attribute, ast.Attribute):
        return None
    end = tree.end(attribute.value)
    close = end
    while tree.text[close : close + 1].isspace():
        close += 1
    if tree.text[close : close + 1] == ")":
        # The brackets of `(a - b).item()` go where nothing needs them any more.
        text, end = tree.segment(attribute.value), close + 1
        if bracketed(tree, node, attribute.value, text) == text:
            return tree.instead(node, text)
    return Patch(end, tree.end(node), "")


def bracketed(tree: Tree, old: ast.AST, new: ast.AST, text: str) -> str:
    """The text of an expression, in brackets where the place of the old one needs them."""
    parent = tree.parents.get(old)
    tight = isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript, ast.Compare, ast.Await))
    if isinstance(parent, ast.Subscript) and parent.slice is old:
        tight = False
    if isinstance(parent, ast.Call) and parent.func is old:
        tight = True
    return f"({text})" if tight and isinstance(new, LOOSE) else text
