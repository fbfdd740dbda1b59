"""Rewrites on request, hazard or not: any in-place statement out of place, and a tensor copied as torch wants it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import dedent

from gradsight.fixes.aliases import every_binding, reaching
from gradsight.fixes.draft import Draft, short
from gradsight.fixes.expressions import ATOMS
from gradsight.fixes.kinds import is_container, is_key, is_plainly_tensor
from gradsight.fixes.lines import is_compound
from gradsight.fixes.names import last_name, meaning
from gradsight.fixes.out_of_place import is_list, rewrite, written_base
from gradsight.fixes.replacing import NUMBERS, is_unrecorded, may_lose_its_graph, replaced
from gradsight.fixes.tree import BLOCKS, Patch, Tree, first_line, patched
from gradsight.fixes.writes import WriteStatement, writes_in
from gradsight.model.fix import Safety
from gradsight.model.source import Span

PLAIN = (ast.Constant, ast.JoinedStr, ast.List, ast.ListComp, ast.Dict, ast.Set, ast.DictComp)


def rewrites(tree: Tree, span: Span) -> Iterator[Draft]:
    """The writes of the statements at a place, each out of place."""
    for statement in statements_at(tree, span):
        yield from _rewrites_of(tree, statement, span)
        yield from _copies_of(tree, statement, span)


def statements_at(tree: Tree, span: Span) -> list[ast.stmt]:
    """The statements on the lines of a span; where it lies inside one of them, that one alone."""
    found: list[ast.stmt] = []
    waiting: list[ast.AST] = [tree.module]
    while waiting:
        node = waiting.pop()
        blocks = [getattr(node, field, ()) for field in (*BLOCKS, "handlers", "cases")]
        for inner in (one for block in blocks for one in block):
            if not isinstance(inner, ast.stmt):
                waiting.append(inner)
            elif _is_touched(inner, span):
                found.append(inner)
                waiting.append(inner)
    start, end = tree.offsets(span)
    plain = [one for one in found if not is_compound(one)]
    inside = [one for one in plain if tree.start(one) <= start and end <= tree.end(one)]
    return inside or sorted(found, key=tree.start)


def _rewrites_of(tree: Tree, statement: ast.stmt, span: Span) -> Iterator[Draft]:
    for write in writes_in(tree, statement):
        if not _is_touched(write.node, span) or not may_be_tensor(tree, statement, write):
            continue
        if is_unrecorded(tree, statement, write):
            changed = replaced(tree, statement, write)
        else:
            changed = rewrite(tree, statement, write, asked=True)
        if changed is None or not (
            changed.keeps_tensor or changed.standing.read_later or not changed.standing.reasons
        ):
            continue
        if changed.how == "layer":
            title = f"use `{changed.name}` without `inplace=True`"
        elif changed.how == "clone":
            title = f"clone `{short(changed.name)}` before this write"
        else:
            title = f"rewrite as `{short(_told(tree, statement, changed.patches), 60)}`"
        is_safe = changed.standing.is_private and not may_lose_its_graph(tree, statement, changed)
        safety: Safety = "safe" if is_safe else "unsafe"
        yield Draft("rewrite", title, safety, changed.patches)


def _told(tree: Tree, statement: ast.stmt, patches: tuple[Patch, ...]) -> str:
    """What a statement becomes, in one line; of several statements the first."""
    start, end = tree.start(statement), tree.end(statement)
    if tree.begins_line(statement):
        start = tree.line_start(start)
    inner = tuple(
        Patch(one.start - start, one.end - start, one.text) for one in patches if start <= one.start <= end
    )
    text = dedent(patched(tree.text[start:end], inner))
    line = text.strip().split("\n")[0].strip()
    try:
        ast.parse(line)
        return line
    except SyntaxError:
        pass
    try:
        return ast.unparse(ast.parse(text).body[0]).split("\n")[0]
    except (SyntaxError, IndexError):
        return line


def _copies_of(tree: Tree, statement: ast.stmt, span: Span) -> Iterator[Draft]:
    """`torch.tensor(t)` of a tensor: torch warns, and asks for `t.detach().clone()`, which has the same value."""
    if is_compound(statement):
        return
    for call in ast.walk(statement):
        if not isinstance(call, ast.Call) or len(call.args) != 1 or not _is_touched(call, span):
            continue
        given, known = call.args[0], {keyword.arg: keyword.value for keyword in call.keywords}
        if meaning(tree, call.func) != "torch.tensor" or not is_plainly_tensor(tree, given, statement):
            continue
        methods = {"dtype": "to", "device": "to", "requires_grad": "requires_grad_"}
        if not known.keys() <= methods.keys():
            continue
        text = tree.segment(given)
        inner = text if isinstance(given, ATOMS) else f"({text})"
        asked = "".join(f".{methods[name]}({tree.segment(known[name])})" for name in methods if name in known)
        patch = tree.instead(call, f"{inner}.detach().clone(){asked}")
        yield Draft("copy", f"copy with `{short(text)}.detach().clone()`", "safe", (patch,))


def _is_touched(node: ast.AST, span: Span) -> bool:
    """Whether a node stands on one of the lines of a span."""
    return first_line(node) <= span.end_line and (getattr(node, "end_lineno", None) or 0) >= span.line


def may_be_tensor(tree: Tree, statement: ast.stmt, write: WriteStatement) -> bool:
    """Whether what is written may be a tensor: not a number, a string or a list that the text plainly makes."""
    target = write.target
    if isinstance(target, ast.Subscript) and is_container(
        tree, written_base(tree, target, statement) or target
    ):
        return False
    if write.form == "item" and isinstance(target, ast.Subscript):
        given = getattr(statement, "value", None)
        if is_key(target.slice) or is_list(tree, target.value, statement):
            return False
        if isinstance(given, (ast.Dict, ast.Lambda, ast.Set)) or (given is not None and is_key(given)):
            return False
        if isinstance(given, ast.Tuple) and isinstance(target.slice, ast.Name):
            return False
        return not _is_plain(tree, target.value, statement) and not _is_row_of_lists(tree, target, statement)
    if write.form != "augmented":
        return True
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return False
    if isinstance(value, (ast.List, ast.ListComp, ast.JoinedStr, ast.Tuple)):
        return False
    base = target.value if isinstance(target, ast.Subscript) else target
    return not _is_plain(tree, base, statement)


def _is_row_of_lists(tree: Tree, target: ast.Subscript, statement: ast.stmt) -> bool:
    """Whether `table[i][j]` is an entry of a list of lists."""
    row = target.value
    if not isinstance(row, ast.Subscript) or not isinstance(row.value, ast.Name):
        return False
    bindings, _, _ = reaching(tree, row.value.id, statement, tree.scope(statement))
    lists = (ast.List, ast.ListComp, ast.Dict, ast.DictComp)
    for binding in bindings:
        value = binding.value
        inner = value.elts[:1] if isinstance(value, ast.List) else [getattr(value, "elt", None)]
        if any(isinstance(one, lists) or isinstance(getattr(one, "left", None), ast.List) for one in inner):
            return True
    return False


def _is_plain(tree: Tree, node: ast.AST | None, statement: ast.stmt) -> bool:
    return every_binding(tree, node, statement, lambda one: _is_plain_value(one.value))


def _is_plain_value(value: ast.AST | None) -> bool:
    if isinstance(value, PLAIN):
        return True
    if isinstance(value, ast.UnaryOp):
        return _is_plain_value(value.operand)
    if isinstance(value, ast.BinOp):
        return _is_plain_value(value.left) and _is_plain_value(value.right)
    return isinstance(value, ast.Call) and last_name(value.func) in NUMBERS
