"""Repairs of how often, and from what, backward is run (GS4xx)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradsight.fixes.aliases import is_read_after, reaching
from gradsight.fixes.calls import renamed_keyword, with_keyword, without_keyword
from gradsight.fixes.draft import Draft, FixCase, drafts, short
from gradsight.fixes.expressions import appended
from gradsight.fixes.inplace import is_update, without_recording
from gradsight.fixes.lines import insert_after, is_compound, move_before, remove, wrap
from gradsight.fixes.names import bound_in, own_nodes, reach
from gradsight.fixes.sharing import roots
from gradsight.fixes.tree import Patch, Tree


def non_scalar(case: FixCase) -> Iterator[Draft]:
    """Reduce to a scalar.  Unsafe: the mean and the sum are both possible, and differ."""
    call = case.node
    if not isinstance(call, ast.Call):
        return
    value: ast.AST | None = call.func.value if _method(call) == "backward" else None  # type: ignore[attr-defined]
    if case.word("how") != "backward":
        value = call.args[0] if call.args else None
    if value is None:
        return
    name = short(case.tree.segment(value))
    ways = ("mean", "sum") if "loss" in name.lower() else ("sum", "mean")
    for way in ways:
        patches = appended(case.tree, value, f".{way}()")
        yield from drafts(f"reduce-{way}", f"take the {way} of `{name}`", "unsafe", patches)


def _method(call: ast.AST) -> str:
    return call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""


def backward_twice(case: FixCase) -> Iterator[Draft]:
    """Add the losses and walk once; or keep the graph, or compute the shared part anew."""
    yield from _added(case)
    first = case.step_node("needed")
    if isinstance(first, ast.Call):
        patch = with_keyword(case.tree, first, "retain_graph", "True")
        title = "keep the graph with `retain_graph=True`"
        yield from drafts("retain-graph", title, "unsafe", patch)
    yield from _computed_in_loop(case)


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
    patch = Patch(tree.start(loss), tree.end(loss), f"({left} + {right})")
    if not isinstance(loss, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        patch = Patch(tree.start(second), tree.end(second), f"({left} + {right}).backward()")
    yield Draft(
        "add-losses", f"add `{short(left)}` to `{short(right)}` and call backward once", "safe", (gone, patch)
    )


def _summed_loop(tree: Tree, loop: ast.For, loss: ast.expr) -> Iterator[Draft]:
    """A loop that only computes a loss and walks it, as one sum."""
    over = f"{tree.segment(loop.target)} in {tree.segment(loop.iter)}"
    if len(loop.body) == 1 and ast.unparse(loss) == ast.unparse(loop.target):
        inner = tree.segment(loop.iter)
    elif len(loop.body) == 2 and isinstance(loop.body[0], ast.Assign):
        made = loop.body[0]
        names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)} | {
            ast.unparse(loss)
        }
        if [ast.unparse(target) for target in made.targets] != [ast.unparse(loss)]:
            return
        if any(is_read_after(tree, name, loop, tree.scope(loop)) for name in names):
            return
        inner = f"{tree.segment(made.value)} for {over}"
    else:
        return
    if "\n" in inner or "#" in tree.segment(loop):
        return
    patch = Patch(tree.start(loop), tree.end(loop), f"sum({inner}).backward()")
    yield Draft("add-losses", f"add up `{short(ast.unparse(loss))}` and call backward once", "safe", (patch,))


def _plain_backward(statement: ast.stmt) -> ast.expr | None:
    """What `loss.backward()` without arguments is called on."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
        return call.func.value if not call.args and not call.keywords else None
    return None


def _computed_in_loop(case: FixCase) -> Iterator[Draft]:
    """Move the shared part into the loop that walks it again.  Unsafe: it then sees the values of each round."""
    tree, saved = case.tree, case.step_statement("saved")
    if not isinstance(saved, ast.Assign):
        return
    for loop in tree.loops(case.statement):
        if loop in tree.block(saved) and tree.start(saved) < tree.start(loop):
            patches = move_before(tree, saved, loop.body[0])
            title = f"compute `{short(tree.segment(saved.targets[0]))}` in each step"
            yield from drafts("into-loop", title, "unsafe", patches)


def state_carried(case: FixCase) -> Iterator[Draft]:
    """Cut the carried state after each backward.  Unsafe: how far back the gradient goes is a choice."""
    tree, node = case.tree, case.node
    if isinstance(node, ast.Call) and _method(node) in ("append", "add", "put", "appendleft") and node.args:
        patches = appended(tree, node.args[-1], ".detach()")
        yield from drafts(
            "store-detached", f"store `{short(tree.segment(node.args[-1]))}.detach()`", "unsafe", patches
        )
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
    mode = reach(tree, "torch.no_grad", statement)
    patches = wrap(tree, [statement], f"with {mode.text}():") if mode is not None else None
    if mode is not None and patches is not None:
        yield Draft(
            "no-grad", f"update `{name}` under `torch.no_grad()`", "unsafe", (*mode.patches, *patches)
        )


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
        isinstance(node, ast.Attribute)
        and node.attr == "grad"
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for node in own_nodes(tree.scope(backward))
    )


def _bound_after(tree: Tree, name: str, backward: ast.stmt) -> ast.expr | None:
    """The value that a name gets behind the backward, in the same loop."""
    loops = tree.loops(backward)
    for node in own_nodes(loops[0]) if loops else []:
        if isinstance(node, ast.Assign) and tree.start(node) > tree.start(backward):
            if [ast.unparse(target) for target in node.targets] == [name]:
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
    for node in own_nodes(case.statement):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and roots(tree, node) == [node]:
            parent = tree.parents.get(node)
            text = tree.segment(node)
            targets = case.statement.targets if isinstance(case.statement, ast.Assign) else []
            if any(tree.segment(target) == text for target in targets) and not isinstance(
                parent, ast.Attribute
            ):
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
    elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
        value = statement.value.right
    if value is None:
        return
    if isinstance(statement, ast.AugAssign) and _is_number(tree, statement):
        number = appended(tree, value, ".item()")
        yield from drafts("item-kept", f"use `{short(tree.segment(value))}.item()`", "safe", number)
    patches = appended(tree, value, ".detach()")
    yield from drafts("detach-kept", f"use `{short(tree.segment(value))}.detach()`", "safe", patches)


def _is_number(tree: Tree, statement: ast.AugAssign) -> bool:
    """Whether a running total starts as a number and nothing is asked of it that only a tensor can do."""
    target = statement.target
    if not isinstance(target, ast.Name) or not isinstance(statement.op, ast.Add):
        return False
    scope = tree.scope(statement)
    for node in ast.walk(scope):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == target.id
        ):
            return False
        if isinstance(node, ast.Call) and any(
            isinstance(one, ast.Name) and one.id == target.id for one in node.args
        ):
            if not (
                isinstance(node.func, ast.Name) and node.func.id in ("print", "float", "round", "str", "len")
            ):
                return False
    bindings, _, argument = reaching(tree, target.id, statement, scope)
    return (
        not argument
        and bool(bindings)
        and all(
            isinstance(one.value, ast.Constant) and isinstance(one.value.value, (int, float))
            for one in bindings
        )
    )


def penalty(case: FixCase) -> Iterator[Draft]:
    """Record the gradient itself."""
    if isinstance(case.node, ast.Call):
        patch = with_keyword(case.tree, case.node, "create_graph", "True")
        if any(
            word.arg == "retain_graph" and ast.unparse(word.value) == "True" for word in case.node.keywords
        ):
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
    if isinstance(made, ast.Assign) and [ast.unparse(one) for one in made.targets] == [name]:
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
