"""One call, or one statement without a block, edited by libcst: commas, line breaks and comments stay as they were written.

libcst is imported on first use: it takes half a second.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from gradsight.fixes.difference import trimmed
from gradsight.fixes.tree import Patch, Tree

if TYPE_CHECKING:
    import libcst


def without_keyword(tree: Tree, call: ast.Call, *names: str) -> Patch | None:
    """The call without some keyword arguments."""
    parsed = _parse(tree, call)
    if parsed is None:
        return None
    kept = [arg for arg in parsed.args if arg.keyword is None or arg.keyword.value not in names]
    if len(kept) == len(parsed.args):
        return None
    return _patch(tree, call, _with_args(parsed, kept))


def without_argument(tree: Tree, call: ast.Call, argument: ast.expr) -> Patch | None:
    """The call without one argument, which has a default; False in its stead where others follow by their place."""
    import libcst

    for keyword in call.keywords:
        if keyword.value is argument and keyword.arg is not None:
            return without_keyword(tree, call, keyword.arg)
    parsed, place = _parse(tree, call), call.args.index(argument)
    if parsed is None:
        return None
    args = list(parsed.args)
    if place + 1 < len(call.args):
        args[place] = args[place].with_changes(value=libcst.Name("False"))
        return _patch(tree, call, parsed.with_changes(args=args))
    return _patch(tree, call, _with_args(parsed, args[:place] + args[place + 1 :]))


def with_keyword(tree: Tree, call: ast.Call, name: str, value: str) -> Patch | None:
    """The call with a keyword argument set to a value, which replaces the one it had."""
    import libcst

    parsed = _parse(tree, call)
    if parsed is None:
        return None
    expression = libcst.parse_expression(value)
    args = list(parsed.args)
    for place, arg in enumerate(args):
        if arg.keyword is not None and arg.keyword.value == name:
            args[place] = arg.with_changes(value=expression)
            return _patch(tree, call, parsed.with_changes(args=args))
    if any(arg.star == "**" for arg in args):
        # Options that are spread may bring it already.
        return None
    added = libcst.Arg(
        keyword=libcst.Name(name),
        value=expression,
        equal=libcst.AssignEqual(libcst.SimpleWhitespace(""), libcst.SimpleWhitespace("")),
    )
    if args:
        last, end = args[-1], _after(args[-1])
        comma = libcst.Comma(whitespace_after=_ended(end, _between(parsed)))
        args[-1] = last.with_changes(comma=comma, whitespace_after_arg=libcst.SimpleWhitespace(""))
        if isinstance(last.comma, libcst.Comma):
            added = added.with_changes(comma=last.comma.with_changes(whitespace_after=_uncommented(end)))
        else:
            added = added.with_changes(whitespace_after_arg=_uncommented(end))
    return _patch(tree, call, parsed.with_changes(args=[*args, added]))


def _between(call: libcst.Call) -> libcst.BaseParenthesizableWhitespace:
    """What stands between two arguments of this call, as far as it shows."""
    import libcst

    first = call.args[0].comma
    if len(call.args) > 1 and isinstance(first, libcst.Comma):
        return _uncommented(first.whitespace_after)
    before = call.whitespace_before_args
    if isinstance(before, libcst.ParenthesizedWhitespace):
        return _uncommented(before)
    return libcst.SimpleWhitespace(" ")


def _uncommented(space: libcst.BaseParenthesizableWhitespace) -> libcst.BaseParenthesizableWhitespace:
    import libcst

    if not isinstance(space, libcst.ParenthesizedWhitespace):
        return space
    line = space.first_line.with_changes(comment=None, whitespace=libcst.SimpleWhitespace(""))
    return space.with_changes(first_line=line, empty_lines=[])


def renamed_keyword(tree: Tree, call: ast.Call, old: str, new: str) -> Patch | None:
    """The call with one keyword under another name, its value as it was."""
    for keyword in call.keywords:
        if keyword.arg == old:
            start = tree.start(keyword)
            return Patch(start, start + len(old), new)
    return None


def load_libcst() -> None:
    """Import libcst now instead of on first use."""
    import libcst

    libcst.parse_expression("ready()")


def small_statement(text: str) -> libcst.BaseSmallStatement | None:
    """A statement without a block as libcst sees it."""
    import libcst

    try:
        line = libcst.parse_statement(text)
    except libcst.ParserSyntaxError:
        return None
    return line.body[0] if isinstance(line, libcst.SimpleStatementLine) else None


def restated(tree: Tree, statement: ast.stmt, changed: libcst.BaseSmallStatement) -> Patch:
    """The smallest replacement that turns a statement into another one."""
    return trimmed(tree.start(statement), old := tree.segment(statement), _code(old, changed))


def stated(tree: Tree, statement: ast.stmt, text: str) -> Patch | None:
    """A statement turned into the one that a text spells; None where it spells none."""
    changed = small_statement(text)
    return restated(tree, statement, changed) if changed is not None else None


def assigned(
    tree: Tree, statement: ast.Expr, target: str, changed: tuple[Patch, ...]
) -> tuple[Patch, ...] | None:
    """An expression that stands alone, changed and given to a target: `x.mul_(a)` as `x = x.mul(a)`."""
    import libcst

    try:
        value = libcst.parse_statement(tree.segment(statement, changed))
        model = libcst.parse_statement(f"{target} = 0")
    except libcst.ParserSyntaxError:
        return None
    lines = [line.body[0] for line in (value, model) if isinstance(line, libcst.SimpleStatementLine)]
    if len(lines) < 2 or not isinstance(lines[0], libcst.Expr) or not isinstance(lines[1], libcst.Assign):
        return None
    return (restated(tree, statement, lines[1].with_changes(value=lines[0].value)),)


def _parse(tree: Tree, call: ast.Call) -> libcst.Call | None:
    """The call as libcst sees it; the parentheses allow line breaks that parentheses around the call allowed."""
    import libcst

    try:
        parsed = libcst.parse_expression(f"({tree.segment(call)})")
    except libcst.ParserSyntaxError:
        return None
    return parsed if isinstance(parsed, libcst.Call) else None


def _with_args(call: libcst.Call, args: list[libcst.Arg]) -> libcst.Call:
    """The call with fewer arguments; the last one ends as the last one did, and keeps the comment behind it."""
    import libcst

    if not args:
        return call.with_changes(args=[], whitespace_before_args=libcst.SimpleWhitespace(""))
    old, last = call.args[-1], args[-1]
    if last is old:
        return call.with_changes(args=args)
    space = _ended(_after(last), _after(old))
    if isinstance(old.comma, libcst.Comma):
        args[-1] = last.with_changes(comma=old.comma.with_changes(whitespace_after=space))
    else:
        args[-1] = last.with_changes(comma=old.comma, whitespace_after_arg=space)
    return call.with_changes(args=args)


def _after(arg: libcst.Arg) -> libcst.BaseParenthesizableWhitespace:
    """What stands behind an argument, and its comma."""
    import libcst

    return arg.comma.whitespace_after if isinstance(arg.comma, libcst.Comma) else arg.whitespace_after_arg


def _ended(
    space: libcst.BaseParenthesizableWhitespace, end: libcst.BaseParenthesizableWhitespace
) -> libcst.BaseParenthesizableWhitespace:
    """White space with the comment of one place and the last line of another."""
    import libcst

    if not isinstance(space, libcst.ParenthesizedWhitespace) or space.first_line.comment is None:
        return end
    if not isinstance(end, libcst.ParenthesizedWhitespace):
        return space
    return space.with_changes(indent=end.indent, last_line=end.last_line)


def _patch(tree: Tree, call: ast.Call, changed: libcst.Call) -> Patch:
    """The smallest replacement that turns the call into the changed one."""
    return trimmed(tree.start(call), old := tree.segment(call), _code(old, changed)[1:-1])


def _code(old: str, changed: libcst.CSTNode) -> str:
    """The text of what an old text becomes, with the line ends that it had."""
    import libcst

    ending = re.search(r"\r\n|\r|\n", old)
    return libcst.Module(body=[], default_newline=ending.group() if ending else "\n").code_for_node(changed)
