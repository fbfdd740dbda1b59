"""Whole statements as lines of text: put one before or after another, take one out, wrap some in a block."""

from __future__ import annotations

import ast

from gradsight.fixes.tree import Patch, Tree


def insert_before(tree: Tree, statement: ast.stmt, line: str) -> Patch | None:
    """Put one more statement in front of another."""
    if tree.is_elif(statement):
        return None
    start = tree.start(statement)
    if not tree.begins_line(statement):
        return Patch(start, start, f"{line}; ") if not is_compound(statement) else None
    place = tree.line_start(start)
    return Patch(place, place, tree.indent(statement) + line + tree.newline)


def insert_after(tree: Tree, statement: ast.stmt, line: str) -> Patch | None:
    """Put one more statement behind another."""
    end = tree.end(statement)
    if not tree.begins_line(statement) or not tree.ends_line(statement):
        return Patch(end, end, f"; {line}") if not is_compound(statement) else None
    place = tree.line_end(end)
    return Patch(place, place, tree.newline + tree.indent(statement) + line)


def remove(tree: Tree, statement: ast.stmt) -> Patch | None:
    """Take a statement that stands alone on its lines out; a block that would be empty keeps `pass`."""
    if not tree.stands_alone(statement):
        return None
    if len(tree.block(statement)) == 1:
        return Patch(tree.start(statement), tree.end(statement), "pass")
    return Patch(tree.line_start(tree.start(statement)), tree.next_line(tree.end(statement)), "")


def move_after(tree: Tree, statement: ast.stmt, anchor: ast.stmt) -> tuple[Patch, ...] | None:
    """Move a statement, with the comment on its line, to directly behind another one."""
    gone = remove(tree, statement)
    if gone is None or gone.text or not tree.stands_alone(anchor):
        return None
    place = tree.line_end(tree.end(anchor))
    return gone, Patch(place, place, tree.newline + _reindented(tree, statement, tree.indent(anchor)))


def move_before(tree: Tree, statement: ast.stmt, anchor: ast.stmt) -> tuple[Patch, ...] | None:
    """Move a statement, with the comment on its line, to directly in front of another one."""
    gone = remove(tree, statement)
    if gone is None or gone.text or not tree.begins_line(anchor) or tree.is_elif(anchor):
        return None
    place = tree.line_start(tree.start(anchor))
    return gone, Patch(place, place, _reindented(tree, statement, tree.indent(anchor)) + tree.newline)


def wrap(tree: Tree, statements: list[ast.stmt], header: str) -> tuple[Patch, ...] | None:
    """Put neighbouring statements under one header; the lines inside a string that spans lines stay where they are."""
    if not all(tree.begins_line(one) and tree.ends_line(one) for one in statements):
        return None
    if tree.is_elif(statements[0]):
        return None
    first = tree.line_start(tree.start(statements[0]))
    head = tree.indent(statements[0]) + header + tree.newline
    patches = []
    unit = tree.indent_unit
    frozen = string_lines(statements)
    begin = tree.place(first)[0]
    last = tree.place(tree.end(statements[-1]))[0]
    for line in range(begin, last + 1):
        start = tree.starts[line - 1]
        indent = "" if line in frozen or not tree.text[start : tree.line_end(start)].strip() else unit
        text = (head if line == begin else "") + indent
        if text:
            patches.append(Patch(start, start, text))
    return tuple(patches)


def unwrap(tree: Tree, statement: ast.With | ast.AsyncWith) -> tuple[Patch, ...] | None:
    """Take the header of a block away and move its body one level out."""
    body = statement.body
    if not tree.begins_line(statement) or not tree.begins_line(body[0]):
        return None
    outer, inner = tree.indent(statement), tree.indent(body[0])
    if not inner.startswith(outer) or len(inner) == len(outer):
        return None
    patches = [Patch(tree.line_start(tree.start(statement)), tree.line_start(tree.start(body[0])), "")]
    frozen = string_lines(list(body))
    for line in range(tree.place(tree.start(body[0]))[0], tree.place(tree.end(body[-1]))[0] + 1):
        start = tree.starts[line - 1]
        if line in frozen or not tree.text.startswith(inner, start):
            continue
        patches.append(Patch(start + len(outer), start + len(inner), ""))
    return tuple(patches)


def string_lines(statements: list[ast.stmt]) -> set[int]:
    """The lines that begin inside a string."""
    lines: set[int] = set()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.JoinedStr) or (
                isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
            ):
                lines.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
    return lines


def is_compound(statement: ast.stmt) -> bool:
    """Whether a statement has a block of its own."""
    return isinstance(getattr(statement, "body", None), list) or isinstance(statement, ast.Match)


def _reindented(tree: Tree, statement: ast.stmt, indent: str) -> str:
    """A statement's lines, with the comment behind it, at another indentation."""
    old = tree.indent(statement)
    frozen = string_lines([statement])
    first = tree.place(tree.start(statement))[0]
    last = tree.place(tree.end(statement))[0]
    lines = []
    for line in range(first, last + 1):
        start = tree.starts[line - 1]
        text = tree.text[start : tree.line_end(start)]
        if line not in frozen and text.startswith(old):
            text = indent + text[len(old) :]
        lines.append(text)
    return tree.newline.join(lines)
