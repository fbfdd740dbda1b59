"""Repairs of how gradients are read and kept (GS3xx)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradsight.fixes.aliases import reads
from gradsight.fixes.calls import without_keyword
from gradsight.fixes.draft import Draft, FixCase, drafts, moves, short, shown
from gradsight.fixes.expressions import appended, without_method
from gradsight.fixes.lines import insert_after, insert_before, move_after, wrap
from gradsight.fixes.names import (
    attributes_in,
    bound_in,
    is_name,
    is_read,
    meaning,
    method_of,
    names_in,
    own_nodes,
    stored_in,
)
from gradsight.fixes.tree import COMPREHENSIONS, Patch, Tree
from gradsight.model.fix import Safety

WAITS = frozenset(
    "Event Lock RLock Condition Barrier Semaphore BoundedSemaphore Queue SimpleQueue wait".split()
)


def non_leaf_read(case: FixCase) -> Iterator[Draft]:
    """Mark the result as the leaf where that is possible, or ask torch to keep its gradient."""
    made = case.step_statement("made")
    if made is None:
        return
    yield from leaf_made_last(case, case.step_node("made"), made)
    name = case.word("target")
    targets = made.targets if isinstance(made, ast.Assign) else []
    if any(is_name(target, name) for target in targets):
        patch = insert_after(case.tree, made, f"{name}.retain_grad()")
        if patch is not None:
            here = case.tree.scope(made) is case.tree.scope(case.statement)
            earlier = case.tree.start(made) < case.tree.start(case.statement)
            safety: Safety = "safe" if here and earlier else "unsafe"
            if earlier or not here:
                yield Draft("retain-grad", f"call `{name}.retain_grad()`", safety, (patch,))
            elif isinstance(made, ast.Assign):
                patches = appended(case.tree, made.value, ".detach().requires_grad_()")
                yield from drafts("new-leaf", f"make `{name}` a new leaf in each step", "unsafe", patches)


def non_leaf_optimized(case: FixCase) -> Iterator[Draft]:
    """Require the gradient of the finished value; a part of a leaf becomes a new leaf."""
    yield from leaf_made_last(case, case.node, case.statement)
    if isinstance(case.node, ast.Subscript):
        patches = appended(case.tree, case.node, ".detach().clone().requires_grad_()")
        yield from drafts("own-leaf", f"make `{case.word('target')}` a new leaf", "unsafe", patches)


def leaf_made_last(case: FixCase, node: ast.AST | None, statement: ast.stmt) -> Iterator[Draft]:
    """`requires_grad` moves from inside an expression to its result."""
    tree = case.tree
    value = getattr(statement, "value", None)
    whole = value if isinstance(value, ast.expr) else node
    if not isinstance(whole, ast.expr):
        return
    flags = [one for one in ast.walk(whole) if _requires_grad(tree, one)]
    if len(flags) != 1 or flags[0] is whole:
        return
    flag = flags[0]
    assert isinstance(flag, ast.Call)
    whole = _tensor_around(flag, whole)
    if whole is flag:
        return
    is_method = method_of(flag) == "requires_grad_"
    gone = without_method(tree, flag) if is_method else without_keyword(tree, flag, "requires_grad")
    added = appended(tree, whole, ".requires_grad_()")
    if gone is None or added is None:
        return
    name = short(case.word("target") or "the result")
    yield Draft("leaf-last", f"call `requires_grad_()` on the finished `{name}`", "safe", (gone, *added))


def _tensor_around(flag: ast.expr, whole: ast.expr) -> ast.expr:
    """The largest part of an expression that is one tensor computed of the flagged one: not a list, dict or comprehension of them."""
    found = whole
    while True:
        inner: list[ast.expr] = []
        for part in ast.walk(found):
            if isinstance(part, (ast.List, ast.Tuple, ast.Set)):
                inner += part.elts
            elif isinstance(part, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
                inner.append(part.elt)
            elif isinstance(part, ast.DictComp):
                inner.append(part.value)
            elif isinstance(part, ast.Dict):
                inner += part.values
        holder = next(
            (one for one in inner if one is not found and any(part is flag for part in ast.walk(one))), None
        )
        if holder is None:
            return found
        found = holder


def _requires_grad(tree: Tree, node: ast.AST) -> bool:
    """Whether a call makes a leaf that requires grad."""
    if not isinstance(node, ast.Call):
        return False
    if method_of(node) == "requires_grad_":
        return not node.args and not node.keywords
    return meaning(tree, node.func).startswith("torch.") and any(
        word.arg == "requires_grad" and isinstance(word.value, ast.Constant) and word.value.value is True
        for word in node.keywords
    )


def gradient_kept(case: FixCase) -> Iterator[Draft]:
    """Keep a copy."""
    patches = appended(case.tree, case.node, ".detach().clone()")
    yield from drafts("copy-grad", f"store a clone of `{shown(case.tree, case.node)}`", "safe", patches)


def gradient_none(case: FixCase) -> Iterator[Draft]:
    """Pass over what has no gradient."""
    tree, node, statement = case.tree, case.node, case.statement
    if not (isinstance(node, ast.Attribute) and node.attr == "grad"):
        return
    condition = f"{tree.segment(node)} is not None"
    # Where a cut is reported, it is what keeps the gradient away: to skip the gradient would hide that.
    safety: Safety = "unsafe" if any(other.data.get("cut") for other in case.findings) else "safe"
    if case.word("cause") == "cleared":
        yield from _cleared_later(case)
        return
    if case.word("cause") == "without":
        # No backward will ever fill it: to pass over it would hide that.
        return
    generator = _generator_of(tree, node)
    if generator is not None:
        end = tree.end(generator.ifs[-1] if generator.ifs else generator.iter)
        title = f"skip every `{shown(tree, node.value)}` without a gradient"
        yield Draft("skip-none", title, safety, (Patch(end, end, f" if {condition}"),))
        return
    yield from _read_later(case)
    cleared = isinstance(statement, ast.Expr) and method_of(statement.value) in ("zero_", "detach_")
    summed = isinstance(statement, (ast.AugAssign, ast.Expr)) and _is_loop_name(tree, statement, node.value)
    if not cleared and not summed:
        return
    patches = wrap(tree, [statement], f"if {condition}:")
    title = f"do this only where `{short(tree.segment(node.value))}` has a gradient"
    yield from drafts("guard-none", title, safety, patches)


def _cleared_later(case: FixCase) -> Iterator[Draft]:
    """Read the gradient before it is cleared.  Unsafe: another statement changes its place."""
    tree = case.tree
    reader = case.step_statement("call") or case.statement
    block = tree.block(reader)
    for earlier in reversed(block[: block.index(reader)]):
        if isinstance(earlier, ast.Expr) and method_of(earlier.value) == "zero_grad":
            yield from moves("clear-later", tree, earlier, "after", reader)
            return


def _read_later(case: FixCase) -> Iterator[Draft]:
    """Read the gradient behind the backward that fills it.  Unsafe: other lines may rely on the order."""
    tree, statement = case.tree, case.statement
    if tree.loops(statement):
        return
    block = tree.block(statement)
    for later in block[block.index(statement) + 1 :]:
        if isinstance(later, ast.Expr) and method_of(later.value) == "backward":
            patches = move_after(tree, statement, later)
            yield from drafts("read-later", f"move this line after `{shown(tree, later)}`", "unsafe", patches)
            return
        if any(reads(later, name) for name in stored_in(statement)):
            return


def _generator_of(tree: Tree, node: ast.Attribute) -> ast.comprehension | None:
    """The loop of a comprehension that runs over the tensor whose gradient is read."""
    for parent in tree.ancestors(node):
        if isinstance(parent, ast.stmt):
            return None
        if isinstance(parent, COMPREHENSIONS):
            last = parent.generators[-1]
            if is_name(node.value, *names_in(last.target)):
                return last
    return None


def _is_loop_name(tree: Tree, statement: ast.stmt, node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and any(
        isinstance(loop, ast.For) and node.id in names_in(loop.target) for loop in tree.loops(statement)
    )


def read_in_race(case: FixCase) -> Iterator[Draft]:
    """Wait for the other thread."""
    tree, started = case.tree, case.step_statement("call")
    if not isinstance(started, ast.Assign) or len(started.targets) != 1:
        return
    holder = tree.segment(started.targets[0])
    wait = _waiting(tree, started.value, holder)
    if wait is None or not _is_reachable(case, started, started.targets[0]):
        return
    place = case.statement
    for loop in tree.loops(case.statement):
        if loop in tree.ancestors(started):
            break
        place = loop
    patch = insert_before(
        tree, place, wait.replace("\n", tree.newline + tree.indent(place) + tree.indent_unit)
    )
    if patch is not None:
        safety: Safety = "unsafe" if _is_synchronised(tree) else "safe"
        yield Draft("wait", f"wait for `{short(holder)}` first", safety, (patch,))


def _is_synchronised(tree: Tree) -> bool:
    """Whether threads of the text wait for each other, so that one more wait could be for ever."""
    return not WAITS.isdisjoint(attributes_in(tree.module) | names_in(tree.module))


def _waiting(tree: Tree, value: ast.AST, holder: str) -> str | None:
    """The statement that waits for what was started."""
    several = isinstance(value, (ast.ListComp, ast.List))
    made = value.elt if isinstance(value, ast.ListComp) else value
    if isinstance(value, ast.List):
        made = value.elts[0] if value.elts else value
    if method_of(made) == "submit":
        return f"for future in {holder}:\nfuture.result()" if several else f"{holder}.result()"
    if isinstance(made, ast.Call) and meaning(tree, made.func) == "threading.Thread":
        return f"for thread in {holder}:\nthread.join()" if several else f"{holder}.join()"
    return None


def _is_reachable(case: FixCase, started: ast.stmt, holder: ast.AST) -> bool:
    """Whether what holds the thread has the same name where the gradient is read."""
    tree = case.tree
    if tree.scope(started) is tree.scope(case.statement):
        return tree.start(started) < tree.start(case.statement)
    if isinstance(holder, ast.Attribute) and is_name(holder.value, "self"):
        return tree.owner(started) is not None and tree.owner(started) is tree.owner(case.statement)
    is_global = isinstance(tree.scope(started), ast.Module) and isinstance(holder, ast.Name)
    return is_global and tree.segment(holder) not in bound_in(tree.scope(case.statement))


def non_leaf_copied(case: FixCase) -> Iterator[Draft]:
    """Store the value without its graph.  Unsafe: a later loss may have wanted the graph."""
    made, name = case.step_statement("made"), case.word("target")
    if made is None or not name:
        return
    call = case.node
    if isinstance(call, ast.Call) and len(call.args) == 1 and ast.unparse(call.args[0]) == name:
        patch = case.tree.instead(call, f"{name}.detach().clone()")
        yield Draft("copy-value", f"copy with `{name}.detach().clone()`", "unsafe", (patch,))
    for node in own_nodes(case.tree.scope(made)):
        if (
            is_read(node, name)
            and case.tree.start(node) > case.tree.end(made)
            and _is_stored(case.tree, node)
        ):
            patches = appended(case.tree, node, ".detach()")
            yield from drafts("store-detached", f"store `{name}.detach()`", "unsafe", patches)


def _is_stored(tree: Tree, node: ast.AST) -> bool:
    parent = tree.parents.get(node)
    if isinstance(parent, ast.Assign):
        return any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in parent.targets)
    if isinstance(parent, ast.Call):
        return node in parent.args and method_of(parent) in ("append", "add", "insert")
    return isinstance(parent, (ast.Tuple, ast.List, ast.Dict, ast.keyword))
