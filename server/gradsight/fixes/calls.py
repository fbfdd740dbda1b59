"""Arguments of one call, edited by libcst so that commas, line breaks and comments stay as they were written.

libcst is imported on first use: it takes half a second.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

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
    added = libcst.Arg(
        keyword=libcst.Name(name),
        value=expression,
        equal=libcst.AssignEqual(libcst.SimpleWhitespace(""), libcst.SimpleWhitespace("")),
    )
    if args:
        last = args[-1]
        had_comma = isinstance(last.comma, libcst.Comma)
        between = args[0].comma if len(args) > 1 else None
        if not isinstance(between, libcst.Comma):
            between = libcst.Comma(whitespace_after=libcst.SimpleWhitespace(" "))
        if had_comma:
            added = added.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
            args[-1] = last.with_changes(comma=between)
        else:
            added = added.with_changes(whitespace_after_arg=last.whitespace_after_arg)
            args[-1] = last.with_changes(comma=between, whitespace_after_arg=libcst.SimpleWhitespace(""))
    return _patch(tree, call, parsed.with_changes(args=[*args, added]))


def renamed_keyword(tree: Tree, call: ast.Call, old: str, new: str) -> Patch | None:
    """The call with one keyword under another name, its value as it was."""
    for keyword in call.keywords:
        if keyword.arg == old:
            start = tree.start(keyword)
            return Patch(start, start + len(old), new)
    return None


def _parse(tree: Tree, call: ast.Call) -> libcst.Call | None:
    """The call as libcst sees it; the parentheses allow line breaks that parentheses around the call allowed."""
    import libcst

    try:
        parsed = libcst.parse_expression(f"({tree.segment(call)})")
    except libcst.ParserSyntaxError:
        return None
    return parsed if isinstance(parsed, libcst.Call) else None


def _with_args(call: libcst.Call, args: list[libcst.Arg]) -> libcst.Call:
    """The call with fewer arguments; the last one ends as the last one did."""
    import libcst

    if args:
        old = call.args[-1]
        if args[-1] is not old:
            args[-1] = args[-1].with_changes(comma=old.comma, whitespace_after_arg=old.whitespace_after_arg)
        return call.with_changes(args=args)
    return call.with_changes(args=[], whitespace_before_args=libcst.SimpleWhitespace(""))


def _patch(tree: Tree, call: ast.Call, changed: libcst.Call) -> Patch:
    """The smallest replacement that turns the call into the changed one."""
    import libcst

    old = tree.segment(call)
    ending = re.search(r"\r\n|\r|\n", old)
    empty = libcst.Module(body=[], default_newline=ending.group() if ending else "\n")
    new = empty.code_for_node(changed)[1:-1]
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    start = tree.start(call)
    return Patch(start + first, start + len(old) - last, new[first : len(new) - last])
