"""Whole statements: put one before or after another, take one out, move some to another level.

A statement that is only added or taken out is a line of text.  What changes its level is laid out by libcst, which knows an
indentation from the lines of a string: the statements concerned are parsed, and nothing else of the text.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradsight.fixes.difference import difference
from gradsight.fixes.names import reach
from gradsight.fixes.tree import Patch, Tree

if TYPE_CHECKING:
    import libcst


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
        return tree.instead(statement, "pass")
    return Patch(tree.line_start(tree.start(statement)), tree.next_line(tree.end(statement)), "")


def move_after(tree: Tree, statement: ast.stmt, anchor: ast.stmt) -> tuple[Patch, ...] | None:
    """Move a statement, with the comment on its line, to directly behind another one."""
    place = tree.line_end(tree.end(anchor))
    return _moved(tree, statement, anchor, place, tree.newline) if tree.stands_alone(anchor) else None


def move_before(tree: Tree, statement: ast.stmt, anchor: ast.stmt) -> tuple[Patch, ...] | None:
    """Move a statement, with the comment on its line, to directly in front of another one."""
    if not tree.begins_line(anchor) or tree.is_elif(anchor):
        return None
    return _moved(tree, statement, anchor, tree.line_start(tree.start(anchor)), "", tree.newline)


def _moved(
    tree: Tree, statement: ast.stmt, anchor: ast.stmt, place: int, before: str, after: str = ""
) -> tuple[Patch, ...] | None:
    gone, lines = remove(tree, statement), parsed_lines(tree, [statement])
    if gone is None or gone.text or lines is None:
        return None
    return gone, Patch(place, place, before + lines.at(tree.indent(anchor)) + after)


def wrap(
    tree: Tree, statements: Sequence[ast.stmt], header: str, gone: Sequence[ast.stmt] = ()
) -> tuple[Patch, ...] | None:
    """Put neighbouring statements under one header; those of their neighbours that are `gone` are taken out."""
    every = sorted([*statements, *gone], key=tree.start)
    lines = parsed_lines(tree, every) if all(map(tree.stands_alone, every)) else None
    if lines is None or tree.is_elif(every[0]):
        return None
    import libcst

    inside = [one for one, node in zip(lines.statements, every) if node not in gone]
    block = libcst.IndentedBlock(body=inside, indent=tree.indent_unit)
    return lines.patches(libcst.parse_statement(f"{header} pass").with_changes(body=block))


def under_no_grad(
    tree: Tree, statements: Sequence[ast.stmt], gone: Sequence[ast.stmt] = ()
) -> tuple[Patch, ...] | None:
    """Put neighbouring statements under `with torch.no_grad():`, as that is written in this text."""
    mode = reach(tree, "torch.no_grad", statements[0])
    patches = wrap(tree, statements, f"with {mode.text}():", gone) if mode is not None else None
    return (*mode.patches, *patches) if mode is not None and patches is not None else None


def unwrap(tree: Tree, statement: ast.With | ast.AsyncWith) -> tuple[Patch, ...] | None:
    """Take the header of a block away and move its body one level out."""
    if not tree.begins_line(statement) or not tree.begins_line(statement.body[0]):
        return None
    import libcst

    lines = parsed_lines(tree, [statement])
    block = lines.statements[0] if lines is not None else None
    if (
        lines is None
        or not isinstance(block, libcst.With)
        or not isinstance(block.body, libcst.IndentedBlock)
    ):
        return None
    return lines.patches(*block.body.body)


def is_compound(statement: ast.stmt) -> bool:
    """Whether a statement has a block of its own."""
    return isinstance(getattr(statement, "body", None), list) or isinstance(statement, ast.Match)


@dataclass(frozen=True, slots=True)
class ParsedLines:
    """Neighbouring statements as libcst sees them, with the place of their lines in the text."""

    tree: Tree
    start: int
    end: int
    indent: str
    module: libcst.Module
    statements: Sequence[libcst.BaseStatement]

    def at(self, indent: str, statements: Sequence[libcst.BaseStatement] = ()) -> str:
        """Some of the statements, by default all, as lines with an indentation."""
        import libcst

        newline = self.module.default_newline
        if not indent:
            code = "".join(map(self.module.code_for_node, statements or self.statements))
        else:
            block = libcst.IndentedBlock(body=statements or self.statements, indent=indent)
            code = self.module.code_for_node(block).partition(newline)[2]
        return code.removesuffix(newline)

    def patches(self, *statements: libcst.BaseStatement) -> tuple[Patch, ...]:
        """What puts other statements in the place of these."""
        return difference(self.tree.text[self.start : self.end], self.at(self.indent, statements), self.start)


def parsed_lines(tree: Tree, statements: Sequence[ast.stmt]) -> ParsedLines | None:
    """The lines from the first of some neighbours to the last; None where libcst does not read them."""
    import libcst

    start, end = tree.line_start(tree.start(statements[0])), tree.line_end(tree.end(statements[-1]))
    indent, newline = tree.indent(statements[0]), tree.newline
    # Lines of a block are read inside of one: their own indentation is then no part of them.
    head = f"if True:{newline}" if indent else ""
    try:
        module = libcst.parse_module(head + tree.text[start:end] + newline)
    except libcst.ParserSyntaxError:
        return None
    body: Sequence[libcst.BaseStatement] = module.body
    if head and isinstance(outer := body[0], libcst.If) and isinstance(outer.body, libcst.IndentedBlock):
        body = outer.body.body
    return ParsedLines(tree, start, end, indent, module, body)
