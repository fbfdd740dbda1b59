"""Repairs of how often, and from what, backward is run (GS4xx)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradsight.fixes.aliases import every_binding, is_read_after, reaching
from gradsight.fixes.calls import renamed_keyword, with_keyword, without_keyword
from gradsight.fixes.draft import Draft, FixCase, drafts, short, shown
from gradsight.fixes.expressions import ATOMS, appended
from gradsight.fixes.inplace import is_update, without_recording
from gradsight.fixes.lines import insert_after, is_compound, move_before, remove, under_no_grad
from gradsight.fixes.names import (
    arguments,
    assigns_only,
    attributes_in,
    bound_in,
    is_name,
    names_in,
    own_nodes,
    receiver,
)
from gradsight.fixes.sharing import roots
from gradsight.fixes.tree import Patch, Tree


def non_scalar(case: FixCase) -> Iterator[Draft]:
    """Reduce to a scalar.  Unsafe: the mean and the sum are both possible, and differ."""
    call = case.node
    if not isinstance(call, ast.Call):
        return
    value = receiver(call, "backward")
    if case.word("how") != "backward":
        value = call.args[0] if call.args else None
    if value is None:
        return
    name = shown(case.tree, value)
    ways = ("mean", "sum") if "loss" in name.lower() else ("sum", "mean")
    for way in ways:
        patches = appended(case.tree, value, f".{way}()")
        yield from drafts(f"reduce-{way}", f"take the {way} of `{name}`", "unsafe", patches)


def backward_twice(case: FixCase) -> Iterator[Draft]:
    """Add the losses and walk once; or keep the graph, or compute the shared part in each step."""
    yield from _added(case)
    first = case.step_node("needed")
    if isinstance(first, ast.Call) and (first is not case.node or _walks_losses(case)):
        patch = with_keyword(case.tree, first, "retain_graph", "True")
        title = "keep the graph with `retain_graph=True`"
        yield from drafts("retain-graph", title, "unsafe", patch)
    yield from _computed_in_loop(case)


def _walks_losses(case: FixCase) -> bool:
    """Whether one loop differentiates several losses of one forward pass: nothing learns in between, so its graph may stay.

    A graph that is built once and walked in every step of a training loop is a mistake that `retain_graph=True` hides:
    it goes on with the values from before the first step.
    """
    loop = next(iter(case.tree.loops(case.statement)), None)
    loss = receiver(case.node, "backward") if isinstance(case.node, ast.Call) else None
    if (
        not isinstance(loop, (ast.For, ast.AsyncFor))
        or loss is None
        or not names_in(loss) & names_in(loop.target)
    ):
        return False
    return not any(isinstance(one, ast.Call) and receiver(one, "step") is not None for one in ast.walk(loop))


def _added(case: FixCase) -> Iterator[Draft]:
    """Two neighbouring calls of backward, or a loop of nothing else, become one: gradients add up either way."""
    tree, second = case.tree, case.statement
    first = case.step_statement("needed")
    loss = _plain_backward(second)
    if loss is None or first is None:
        return
    if first is second:
        loop = tree.parents.get(second)
        if isinstance(loop, ast.For) and not loop.orelse and tree.ends_line(loop):
            yield from _summed_loop(tree, loop, loss)
        return
    block = tree.block(second)
    other = _plain_backward(first)
    if other is None or first not in block or block.index(second) - block.index(first) != 1:
        return
    left, right = tree.segment(other), tree.segment(loss)
    gone = remove(tree, first)
    if left == right or gone is None:
        return
    patch = tree.instead(loss, f"({left} + {right})")
    if not isinstance(loss, ATOMS):
        patch = tree.instead(second, f"({left} + {right}).backward()")
    title = f"add `{short(left)}` to `{short(right)}` and call backward once"
    yield Draft("add-losses", title, "safe", (gone, patch))


def _summed_loop(tree: Tree, loop: ast.For, loss: ast.expr) -> Iterator[Draft]:
    """A loop that only computes a loss and walks it, as one sum."""
    over = f"{tree.segment(loop.target)} in {tree.segment(loop.iter)}"
    if len(loop.body) == 1 and ast.unparse(loss) == ast.unparse(loop.target):
        inner = tree.segment(loop.iter)
    elif len(loop.body) == 2 and isinstance(loop.body[0], ast.Assign):
        made = loop.body[0]
        names = names_in(loop.target) | {ast.unparse(loss)}
        if not assigns_only(made, ast.unparse(loss)):
            return
        if any(is_read_after(tree, name, loop, tree.scope(loop)) for name in names):
            return
        inner = f"{tree.segment(made.value)} for {over}"
    else:
        return
    if "\n" in inner or "#" in tree.segment(loop):
        return
    patch = tree.instead(loop, f"sum({inner}).backward()")
    yield Draft("add-losses", f"add up `{short(ast.unparse(loss))}` and call backward once", "safe", (patch,))


def _plain_backward(statement: ast.stmt) -> ast.expr | None:
    """What `loss.backward()` without arguments is called on."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return receiver(call, "backward") if isinstance(call, ast.Call) and not arguments(call) else None


def _computed_in_loop(case: FixCase) -> Iterator[Draft]:
    """Move the shared part into the loop that walks it again.  Unsafe: it then sees the values of each round."""
    tree, saved = case.tree, case.step_statement("saved")
    if not isinstance(saved, ast.Assign):
        return
    for loop in tree.loops(case.statement):
        if loop in tree.block(saved) and tree.start(saved) < tree.start(loop):
            patches = move_before(tree, saved, loop.body[0])
            title = f"compute `{shown(tree, saved.targets[0])}` in each step"
            yield from drafts("into-loop", title, "unsafe", patches)


def state_carried(case: FixCase) -> Iterator[Draft]:
    """Cut the carried state after each backward.  Unsafe: how far back the gradient goes is a choice."""
    tree, node = case.tree, case.node
    if isinstance(node, ast.Call) and receiver(node, "append", "add", "put", "appendleft") and node.args:
        patches = appended(tree, node.args[-1], ".detach()")
        title = f"store `{shown(tree, node.args[-1])}.detach()`"
        yield from drafts("store-detached", title, "unsafe", patches)
        return
    update = without_recording(case) if is_update(case) else None
    if update is not None:
        yield update
        return
    yield from _detached_after_backward(case)
    yield from _recorded_nowhere(case)
    yield from _detached_where_read(case)


def _recorded_nowhere(case: FixCase) -> Iterator[Draft]:
    """An attribute that is computed from itself is updated without a graph.  Unsafe: the round's own part of the
    gradient goes too."""
    tree, statement = case.tree, case.statement
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute):
        return
    name = tree.segment(statement.targets[0])
    if not isinstance(statement.value, ast.BinOp) or name not in tree.segment(statement.value):
        return
    patches = under_no_grad(tree, [statement])
    yield from drafts("no-grad", f"update `{name}` under `torch.no_grad()`", "unsafe", patches)


def _detached_after_backward(case: FixCase) -> Iterator[Draft]:
    """Cut each carried name where the round ends: behind the backward, or where it gets its value after that."""
    tree = case.tree
    backward = next((tree.statement_at(step.span) for step in case.steps("needed")), None)
    if backward is None or tree.scope(backward) is not tree.scope(case.statement) or is_compound(backward):
        return
    names = carried_names(tree, case.statement, backward)
    if not names or any(_has_gradient_read(tree, name, backward) for name in names):
        return
    title = f"detach `{'` and `'.join(names)}` after each backward"
    later = [_bound_after(tree, name, backward) for name in names]
    if any(later):
        patches: list[Patch] = []
        for value in later:
            some = appended(tree, value, ".detach()") if value is not None else None
            if some is None:
                return
            patches.extend(some)
        yield Draft("detach-state", title, "unsafe", tuple(patches))
        return
    if case.word("op") == "LSTM" and len(names) == 1:
        line = f"{names[0]} = tuple(part.detach() for part in {names[0]})"
    else:
        line = f"{', '.join(names)} = {', '.join(f'{name}.detach()' for name in names)}"
    patch = insert_after(tree, backward, line)
    yield from drafts("detach-state", title, "unsafe", patch)


def _has_gradient_read(tree: Tree, name: str, backward: ast.stmt) -> bool:
    """Whether the gradient of a name is read, which a detached tensor does not have."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == "grad" and is_name(node.value, name)
        for node in own_nodes(tree.scope(backward))
    )


def _bound_after(tree: Tree, name: str, backward: ast.stmt) -> ast.expr | None:
    """The value that a name gets behind the backward, in the same loop."""
    loops = tree.loops(backward)
    for node in own_nodes(loops[0]) if loops else []:
        if isinstance(node, ast.Assign) and assigns_only(node, name):
            if tree.start(node) > tree.start(backward):
                return node.value
    return None


def carried_names(tree: Tree, statement: ast.stmt, backward: ast.stmt) -> list[str]:
    """The names that a statement reads and a loop around the backward hands from one round to the next."""
    scope = tree.scope(statement)
    around = tree.loops(backward)
    names: list[str] = []
    for node in sorted(
        (one for one in ast.walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)),
        key=tree.start,
    ):
        if node.id in names or node.id not in bound_in(scope):
            continue
        bindings, crossed, _ = reaching(tree, node.id, statement, scope)
        inside = [one for one in bindings if any(loop in tree.ancestors(one.place) for loop in around)]
        if crossed is not None and inside and not all(isinstance(one.place, ast.For) for one in inside):
            names.append(node.id)
    return names


def _detached_where_read(case: FixCase) -> Iterator[Draft]:
    """An attribute that keeps its graph is read without it.  Unsafe: how far back the gradient goes is a choice."""
    tree = case.tree
    targets = case.statement.targets if isinstance(case.statement, ast.Assign) else []
    written = [tree.segment(target) for target in targets]
    for node in own_nodes(case.statement):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and roots(tree, node) == [node]:
            text = tree.segment(node)
            if text in written and not isinstance(tree.parents.get(node), ast.Attribute):
                patches = appended(tree, node, ".detach()")
                yield from drafts("detach-read", f"read `{text}.detach()`", "unsafe", patches)


def kept_alive(case: FixCase) -> Iterator[Draft]:
    """Keep the value without its graph."""
    tree, statement = case.tree, case.statement
    value: ast.AST | None = None
    if isinstance(statement, ast.AugAssign):
        value = statement.value
    elif isinstance(case.node, ast.Call) and case.node.args:
        value = case.node.args[-1]
    elif isinstance(statement, ast.Assign):
        value = statement.value.right if isinstance(statement.value, ast.BinOp) else statement.value
    if value is None:
        return
    if isinstance(statement, ast.AugAssign) and _is_number(tree, statement):
        number = appended(tree, value, ".item()")
        yield from drafts("item-kept", f"use `{shown(tree, value)}.item()`", "safe", number)
    patches = appended(tree, value, ".detach()")
    spoken = f"({shown(tree, value)})" if isinstance(value, ast.BinOp) else shown(tree, value)
    yield from drafts("detach-kept", f"use `{spoken}.detach()`", "safe", patches)


def _is_number(tree: Tree, statement: ast.AugAssign) -> bool:
    """Whether a running total starts as a number and nothing is asked of it that only a tensor can do."""
    target = statement.target
    if not isinstance(target, ast.Name) or not isinstance(statement.op, ast.Add):
        return False
    scope = tree.scope(statement)
    if attributes_in(scope, of=target.id):
        return False
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and any(is_name(one, target.id) for one in node.args):
            if not is_name(node.func, "print", "float", "round", "str", "len"):
                return False
    return every_binding(
        tree,
        target,
        statement,
        lambda one: isinstance(one.value, ast.Constant) and isinstance(one.value.value, (int, float)),
    )


def penalty(case: FixCase) -> Iterator[Draft]:
    """Record the gradient itself."""
    if isinstance(case.node, ast.Call):
        patch = with_keyword(case.tree, case.node, "create_graph", "True")
        if any(ast.unparse(word) == "retain_graph=True" for word in case.node.keywords):
            # What is recorded anew is retained too, so the other flag is not needed any more.
            patch = renamed_keyword(case.tree, case.node, "retain_graph", "create_graph")
        if patch is not None:
            names = [
                node.id
                for target in getattr(case.statement, "targets", ())
                for node in ast.walk(target)
                if isinstance(node, ast.Name)
            ]
            name = f"`{short('` and `'.join(names))}`" if names else "this gradient"
            title = f"compute {name} with `create_graph=True`"
            yield Draft("create-graph", title, "safe", (patch,))


def unused(case: FixCase) -> Iterator[Draft]:
    """Require the gradient before the tensor is used.  `allow_unused` would only hide the mistake."""
    tree, made, name = case.tree, case.step_statement("made"), case.word("target")
    if isinstance(made, ast.Assign) and assigns_only(made, name):
        patches = appended(tree, made.value, ".requires_grad_()")
        if patches is not None:
            fresh = not roots(tree, made.value) and tree.scope(made) is tree.scope(case.statement)
            yield Draft("require-grad", f"make `{name}` require grad", "safe" if fresh else "unsafe", patches)


def grows(case: FixCase) -> Iterator[Draft]:
    """Let each backward free its graph, and cut what is carried.  Unsafe: the gradient ends earlier."""
    if not isinstance(case.node, ast.Call):
        return
    patch = without_keyword(case.tree, case.node, "retain_graph")
    yield from drafts("free-graph", "free the graph in each step", "unsafe", patch)
