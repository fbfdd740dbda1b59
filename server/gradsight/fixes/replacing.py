"""Writes that autograd does not record, written out of place: the same tensor is given new memory.

Under `no_grad`, through `.data` or `detach()` and in `nn.init` a tensor is changed without a trace in the graph, mostly
because it is a parameter.  A new tensor under its name would be none: it would have no gradient, and no optimizer would
know it.  `w.data = ...` has the same values and leaves the tensor what it is.
"""

from __future__ import annotations

import ast

from gradsight.fixes.aliases import Binding, every_binding
from gradsight.fixes.calls import assigned
from gradsight.fixes.kinds import MADE, is_plainly_tensor, is_used_as_tensor
from gradsight.fixes.lines import insert_before, is_compound
from gradsight.fixes.names import assigns_only, meaning
from gradsight.fixes.out_of_place import (
    Rewrite,
    augmented,
    has_call,
    is_in_comprehension,
    is_list,
    out_of_place,
    standing_of,
)
from gradsight.fixes.sharing import root, roots
from gradsight.fixes.tree import FUNCTIONS, Patch, Tree, heads
from gradsight.fixes.writes import WriteStatement, chain_root

PAST_THE_GRAPH = ("data", "detach", "numpy")
NUMBERS = frozenset(
    "len int float str range sum enumerate time perf_counter item bool set max min abs round".split()
)
"""Calls that mostly give a number or something else that is no tensor."""


def is_unrecorded(tree: Tree, statement: ast.stmt, write: WriteStatement) -> bool:
    """Whether autograd takes no note of a write, and it may be a parameter that is written."""
    target = written(write)
    if target is None or isinstance(target, (ast.Tuple, ast.List)):
        return False
    if write.form == "init" or _passes_the_graph(target):
        return True
    if isinstance(target, ast.Attribute) and target.attr == "grad":
        return False
    base = root(target)
    return (
        base is not None
        and mode_around(tree, statement) != ""
        and not _is_without_grad(tree, base, statement)
        and (write.form != "augmented" or _is_tensor(tree, base, statement))
    )


def replaced(tree: Tree, statement: ast.stmt, write: WriteStatement) -> Rewrite | None:
    """The statement with the written tensor given new memory; None where that cannot be written."""
    target = written(write)
    base = _base(tree, target, statement)
    if target is None or base is None or has_call(base) or mode_around(tree, statement) == "inference_mode":
        # What inference mode makes cannot stand in for a tensor that was made outside.
        return None
    name = tree.segment(base)
    known = standing_of(tree, base, statement, target)
    is_whole = target is base or (_is_data(target) and getattr(target, "value", None) is base)
    if not is_whole or write.form == "item":
        patch = insert_before(tree, statement, f"{name}.data = {name}.data.clone()")
        return Rewrite("clone", f"{name}.data", (patch,), known, True) if patch is not None else None
    if write.form == "augmented":
        assert isinstance(statement, ast.AugAssign)
        end = tree.end(target)
        ahead = (Patch(end, end, ".data"),) if target is base else ()
        after = augmented(tree, statement)
        return Rewrite("new", name, (*ahead, after), known, True) if after is not None else None
    changed = _value(tree, statement, write, target)
    patches = _assigned(tree, statement, write.node, target, name, changed) if changed is not None else None
    return Rewrite("new", name, patches, known, True) if patches is not None else None


def written(write: WriteStatement) -> ast.AST | None:
    """The expression at the bottom of a write."""
    return chain_root(write.node) if write.form == "method" else write.target


def mode_around(tree: Tree, statement: ast.stmt) -> str:
    """`no_grad` or `inference_mode` where a block or a decorator around the statement turns recording off."""
    for parent in tree.ancestors(statement):
        for head in [] if isinstance(parent, ast.ClassDef) else heads(parent):
            called = head.func if isinstance(head, ast.Call) else head
            name = meaning(tree, called).rpartition(".")[2]
            if name in ("no_grad", "inference_mode"):
                return name
            if name in ("enable_grad", "set_grad_enabled"):
                return "no_grad" if _first_is_not_true(head) and name == "set_grad_enabled" else ""
        if isinstance(parent, FUNCTIONS):
            return ""
    return ""


def _first_is_not_true(head: ast.expr) -> bool:
    first = head.args[0] if isinstance(head, ast.Call) and head.args else None
    return not (isinstance(first, ast.Constant) and first.value is True)


def _passes_the_graph(target: ast.AST) -> bool:
    """Whether the way from a target down to its tensor leads through a twin that the graph does not know."""
    node: ast.AST = target
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(node, ast.Attribute) and node.attr in PAST_THE_GRAPH:
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def _is_data(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "data"


def _base(tree: Tree, target: ast.AST | None, statement: ast.stmt) -> ast.AST | None:
    """The whole tensor that is written; None where the text does not tell an item of a list from one of a tensor."""
    node = target
    while node is not None and root(node) is not node:
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute) or meaning(tree, node.func):
                return None
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            if is_list(tree, node.value, statement):
                return node
            if not _passes_the_graph(node.value) and not _is_tensor(tree, node.value, statement):
                return None
            node = node.value
        elif isinstance(node, ast.Attribute):
            node = node.value
        else:
            return None
    return node


def _is_without_grad(tree: Tree, base: ast.AST, statement: ast.stmt) -> bool:
    """Whether a name plainly holds a tensor that needs no gradient: made without recording, or filled by a factory."""
    if not isinstance(base, ast.Name) or f"{base.id}.requires_grad" in tree.text:
        return False

    def is_made_so(binding: Binding) -> bool:
        value, place = binding.value, tree.statement(binding.place)
        if value is None or place is None or roots(tree, value):
            return False
        if any(word in ast.unparse(value) for word in ("Parameter", "requires_grad", "parameters")):
            return False
        made = meaning(tree, value.func) if isinstance(value, ast.Call) else ""
        return mode_around(tree, place) != "" or (
            made.startswith("torch.") and made.removeprefix("torch.") in MADE
        )

    return every_binding(tree, base, statement, is_made_so)


def _is_tensor(tree: Tree, base: ast.AST, statement: ast.stmt) -> bool:
    """Whether the text uses an expression as only a tensor can be used, or what a layer or a function gave: `h = net(x)`."""
    return (
        is_plainly_tensor(tree, base, statement)
        or is_used_as_tensor(tree, base)
        or every_binding(
            tree,
            base,
            statement,
            lambda one: (
                isinstance(one.value, ast.Call)
                and ast.unparse(one.value.func).rpartition(".")[2] not in NUMBERS
            ),
        )
    )


def may_lose_its_graph(tree: Tree, statement: ast.stmt, changed: Rewrite) -> bool:
    """Whether a new tensor would be made without recording, in the place of one that may have had a graph."""
    if changed.keeps_tensor or changed.how == "layer" or not mode_around(tree, statement):
        return False
    return not _is_without_grad(tree, ast.Name(changed.name), statement)


def _value(
    tree: Tree, statement: ast.stmt, write: WriteStatement, target: ast.AST
) -> tuple[Patch, ...] | None:
    """The patches that turn the call into one that leaves its tensor alone."""
    if write.form == "init":
        end = tree.end(target)
        return (Patch(end, end, ".clone()" if _passes_the_graph(target) else ".detach().clone()"),)
    whole = getattr(statement, "value", None) is write.node
    return out_of_place(tree, write, tree.segment(target), operator=whole)


def _assigned(
    tree: Tree, statement: ast.stmt, call: ast.AST, target: ast.AST, name: str, changed: tuple[Patch, ...]
) -> tuple[Patch, ...] | None:
    """The new value given to the tensor, and where the result of the call is used, the tensor in its place."""
    if isinstance(statement, ast.Expr) and statement.value is call:
        return assigned(tree, statement, f"{name}.data", changed)
    if getattr(statement, "value", None) is call and isinstance(statement, ast.Assign):
        place = tree.end(statement.targets[0])
        if assigns_only(statement, f"{name}.data"):
            return changed
        if assigns_only(statement, name):
            return (Patch(place, place, ".data"), *changed)
    if is_compound(statement) or is_in_comprehension(tree, call, statement) or "\n" in tree.segment(call):
        return None
    outside, inside = (sum(ast.unparse(one) == name for one in ast.walk(node)) for node in (statement, call))
    before = insert_before(tree, statement, f"{name}.data = {tree.segment(call, changed)}")
    if before is None or outside > inside:
        return None
    return before, tree.instead(call, tree.segment(target))
