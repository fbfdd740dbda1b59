"""Whether two items of one tensor are surely different elements."""

from __future__ import annotations

import ast

from gradsight.fixes.names import is_name


def is_spared(alias: ast.AST | None, name: str, written: ast.AST | None) -> bool:
    """Whether a view `name[i]` holds nothing of what a write to `name[j]` changes."""
    if not isinstance(alias, ast.Subscript) or not isinstance(written, ast.Subscript):
        return False
    if not is_name(alias.value, name) or not is_name(written.value, name):
        return False
    return any(_differ(left, right) for left, right in zip(_parts(alias.slice), _parts(written.slice)))


def _parts(index: ast.AST) -> list[ast.AST]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def _differ(left: ast.AST, right: ast.AST) -> bool:
    """Whether two indices are a base and a number apart, and the numbers are not the same."""
    first, second = _base_and_number(left), _base_and_number(right)
    if first is None or second is None or first[0] != second[0]:
        return False
    if first[0] == "" and (first[1] < 0) != (second[1] < 0):
        return False
    return first[1] != second[1]


def _base_and_number(node: ast.AST) -> tuple[str, int] | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return "", node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _base_and_number(node.operand)
        return ("", -inner[1]) if inner is not None and inner[0] == "" else None
    if isinstance(node, ast.Name):
        return node.id, 0
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        base, number = _base_and_number(node.left), _base_and_number(node.right)
        if base is not None and number is not None and number[0] == "":
            return base[0], base[1] + (number[1] if isinstance(node.op, ast.Add) else -number[1])
    return None
