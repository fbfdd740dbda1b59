"""Rewrites on request, hazard or not: any in-place statement out of place, and a tensor copied as torch wants it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import dedent

from gradsight.fixes.aliases import reaching
from gradsight.fixes.draft import Draft, short
from gradsight.fixes.expressions import ATOMS
from gradsight.fixes.kinds import is_container, is_key, is_plainly_tensor
from gradsight.fixes.lines import is_compound
from gradsight.fixes.names import meaning
from gradsight.fixes.out_of_place import is_list, rewrite, written_base
from gradsight.fixes.replacing import NUMBERS, is_unrecorded, may_lose_its_graph, replaced
from gradsight.fixes.tree import BLOCKS, Patch, Tree, first_line, patched
from gradsight.fixes.writes import WriteStatement, writes_in
from gradsight.model.fix import Safety
from gradsight.model.source import Span


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
            elif first_line(inner) <= span.end_line and (inner.end_lineno or 0) >= span.line:
                found.append(inner)
                waiting.append(inner)
    start, end = tree.offsets(span)
    plain = [one for one in found if not is_compound(one)]
    inside = [one for one in plain if tree.start(one) <= start and end <= tree.end(one)]
    return inside or sorted(found, key=tree.start)


def _rewrites_of(tree: Tree, statement: ast.stmt, span: Span) -> Iterator[Draft]:
    for write in writes_in(tree, statement):
        first, last = tree.place(tree.start(write.node))[0], tree.place(tree.end(write.node))[0]
        if last < span.line or first > span.end_line or not may_be_tensor(tree, statement, write):
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
        if (
            not isinstance(call, ast.Call)
            or meaning(tree, call.func) != "torch.tensor"
            or len(call.args) != 1
        ):
            continue
        given, known = call.args[0], {keyword.arg: keyword.value for keyword in call.keywords}
        first, last = tree.place(tree.start(call))[0], tree.place(tree.end(call))[0]
        if (
            last < span.line
            or first > span.end_line
            or not known.keys() <= {"dtype", "device", "requires_grad"}
        ):
            continue
        if not is_plainly_tensor(tree, given, statement):
            continue
        text = tree.segment(given)
        inner = text if isinstance(given, ATOMS) else f"({text})"
        moved = "".join(f".to({tree.segment(known[name])})" for name in ("dtype", "device") if name in known)
        wanted = (
            f".requires_grad_({tree.segment(known['requires_grad'])})" if "requires_grad" in known else ""
        )
        patch = Patch(tree.start(call), tree.end(call), f"{inner}.detach().clone(){moved}{wanted}")
        yield Draft("copy", f"copy with `{short(text)}.detach().clone()`", "safe", (patch,))


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
    if not isinstance(node, ast.Name):
        return False
    bindings, _, argument = reaching(tree, node.id, statement, tree.scope(statement))
    if argument or not bindings:
        return False
    return all(_is_plain_value(one.value) for one in bindings)


def _is_plain_value(value: ast.AST | None) -> bool:
    if isinstance(
        value, (ast.Constant, ast.JoinedStr, ast.List, ast.ListComp, ast.Dict, ast.Set, ast.DictComp)
    ):
        return True
    if isinstance(value, ast.UnaryOp):
        return _is_plain_value(value.operand)
    if isinstance(value, ast.BinOp):
        return _is_plain_value(value.left) and _is_plain_value(value.right)
    if isinstance(value, ast.Call):
        func = value.func
        name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
        return name in NUMBERS
    return False
