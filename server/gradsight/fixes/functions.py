"""Repairs of custom autograd functions and hooks (GS7xx)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradsight.fixes.draft import Draft, FixCase, drafts
from gradsight.fixes.expressions import bracketed
from gradsight.fixes.inplace import write_of, written_anew
from gradsight.fixes.lines import insert_after
from gradsight.fixes.names import attributes_in, is_name, method_in, names_in, own_nodes
from gradsight.fixes.out_of_place import out_of_place_value
from gradsight.fixes.tree import Patch
from gradsight.model.fix import Safety


def gradient_count(case: FixCase) -> Iterator[Draft]:
    """One gradient per input; None for the inputs that are no tensors."""
    statement = case.statement
    returned, wanted = case.finding.data.get("returned"), case.finding.data.get("wanted")
    if not isinstance(statement, ast.Return) or statement.value is None:
        return
    if not isinstance(returned, int) or not isinstance(wanted, int) or returned >= wanted:
        return
    value, missing = statement.value, wanted - returned
    end = case.tree.end(value)
    if isinstance(value, ast.Tuple) and case.tree.text[end - 1] == ")":
        end -= 1
    patch = Patch(end, end, ", None" * missing)
    call = case.step_node("call")
    given = call.args if isinstance(call, ast.Call) else []
    plain = all(isinstance(one, ast.Constant) for one in given[returned:])
    safety: Safety = "safe" if plain and len(given) == wanted else "unsafe"
    noun = "input" if missing == 1 else "inputs"
    yield Draft("none-gradient", f"return None for the last {noun}", safety, (patch,))


def dirty(case: FixCase) -> Iterator[Draft]:
    """Tell autograd, or leave the input as it is.  Unsafe: the first makes torch refuse leaves, the second
    hides the write from the caller."""
    function = case.tree.scope(case.statement)
    given = function.args.args if isinstance(function, ast.FunctionDef) else []
    context = given[0].arg if given else ""
    write = write_of(case)
    target = write.target if write is not None else None
    if context and isinstance(target, ast.Name) and _returns(function, target.id):
        patch = insert_after(case.tree, case.statement, f"{context}.mark_dirty({target.id})")
        yield from drafts("mark-dirty", f"call `ctx.mark_dirty({target.id})`", "unsafe", patch)
    yield from (draft.unsafe() for draft in written_anew(case))


def _returns(function: ast.AST, name: str) -> bool:
    """Whether a function returns the very tensor it has written, as torch demands of what is marked."""
    return any(isinstance(node, ast.Return) and is_name(node.value, name) for node in own_nodes(function))


def gradient_edited(case: FixCase) -> Iterator[Draft]:
    """Return a new gradient."""
    tree, statement = case.tree, case.statement
    function = tree.scope(statement)
    if not isinstance(function, ast.FunctionDef):
        return
    is_last = function.body[-1] is statement
    if case.word("returns") == "nothing":
        if is_last and isinstance(statement, ast.Expr):
            patch = Patch(tree.start(statement), tree.start(statement), "return ")
            yield Draft("return-it", f"return what `{function.name}` computes", "unsafe", (patch,))
        elif is_last and isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            added = insert_after(tree, statement, f"return {name}")
            yield from drafts("return-it", f"return `{name}`", "unsafe", added)
        return
    write = write_of(case)
    given = statement.value if isinstance(statement, (ast.Expr, ast.Return)) else None
    if write is not None and write.node is given and (is_last or isinstance(statement, ast.Return)):
        text = out_of_place_value(tree, write)
        if text is not None:
            patch = tree.instead(statement, f"return {text}")
            yield Draft("return-new", f"return a new gradient from `{function.name}`", "safe", (patch,))
        return
    yield from written_anew(case)


def saved_written(case: FixCase) -> Iterator[Draft]:
    """Compute a new tensor.  Unsafe: a later line may rely on the changed one under its old name."""
    write = write_of(case)
    if write is not None and isinstance(write.node, ast.Call):
        text = out_of_place_value(case.tree, write)
        statement = case.statement
        if text is not None and not (isinstance(statement, ast.Expr) and statement.value is write.node):
            patch = case.tree.instead(write.node, text)
            yield Draft("new-tensor", "compute a new tensor", "unsafe", (patch,))
            return
    yield from (draft.unsafe() for draft in written_anew(case))


def kept_on_ctx(case: FixCase) -> Iterator[Draft]:
    """Save for backward, so that torch can check the version.  Unsafe: torch then refuses what went unnoticed."""
    tree, statement = case.tree, case.statement
    owner, forward = tree.owner(statement), tree.scope(statement)
    if owner is None or not isinstance(forward, ast.FunctionDef) or not isinstance(statement, ast.Assign):
        return
    backward, pairs = method_in(owner, "backward"), _kept(statement)
    if backward is None or not backward.args.args or not pairs or "save_for_backward" in attributes_in(owner):
        return
    context, other = forward.args.args[0].arg, backward.args.args[0].arg
    names = [name for name, _ in pairs]
    if not (names_in(backward) | {one.arg for one in backward.args.args}).isdisjoint(names):
        return
    first = backward.body[0]
    unpacked = f"{', '.join(names) if len(names) > 1 else f'({names[0]},)'} = {other}.saved_tensors"
    place = tree.line_start(tree.start(first))
    reads = [
        tree.instead(node, bracketed(tree, node, node, node.attr))
        for node in ast.walk(backward)
        if isinstance(node, ast.Attribute) and node.attr in names and is_name(node.value, other)
    ]
    if not reads or not tree.begins_line(first):
        return
    ways: tuple[tuple[str, Safety], ...] = (("", "unsafe"), (".clone()", "safe"))
    for suffix, safety in ways:
        values = ", ".join(tree.segment(value) + suffix for _, value in pairs)
        saved = tree.instead(statement, f"{context}.save_for_backward({values})")
        added = Patch(place, place, tree.indent(first) + unpacked + tree.newline)
        title = f"save {'a copy of ' if suffix else ''}`{'` and `'.join(names)}` with `save_for_backward`"
        yield Draft("save" + suffix, title, safety, (saved, added, *reads))


def _kept(statement: ast.Assign) -> list[tuple[str, ast.expr]]:
    """The attributes of ctx that a statement sets, with their values; empty when it sets anything else too."""
    target, value = statement.targets[0], statement.value
    targets = list(target.elts) if isinstance(target, ast.Tuple) else [target]
    values = list(value.elts) if isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple) else [value]
    if len(targets) != len(values) or len(statement.targets) != 1:
        return []
    found: list[tuple[str, ast.expr]] = []
    for one, given in zip(targets, values):
        if not isinstance(one, ast.Attribute) or not isinstance(given, ast.Name):
            return []
        found.append((one.attr, given))
    return found
