"""Repairs of the training loop (GS5xx): what is cleared, stepped and switched, and in which order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradsight.fixes.aliases import reads
from gradsight.fixes.draft import Draft, FixCase, drafts, moves, shown
from gradsight.fixes.lines import insert_after, insert_before, move_after
from gradsight.fixes.names import (
    attributes_in,
    bound_in,
    is_name,
    method_of,
    names_in,
    own_nodes,
    receiver,
    stored_in,
)
from gradsight.fixes.tree import Patch, Tree
from gradsight.model.fix import Safety


def never_cleared(case: FixCase) -> Iterator[Draft]:
    """Clear before the backward."""
    tree, step = case.tree, case.step_statement("needed")
    holder = _receiver(step, "step")
    if step is not None and holder is None:
        yield from _cleared_by_hand(case, step)
    if step is None or holder is None:
        return
    name = tree.segment(holder)
    for loop in tree.loops(case.statement):
        for node in own_nodes(loop):
            if isinstance(node, ast.Expr) and _is_uncalled(node.value, name):
                patch = Patch(tree.end(node), tree.end(node), "()")
                yield Draft("call-it", f"call `{name}.zero_grad()`", "safe", (patch,))
                return
    if not is_visible(tree, holder, step, case.statement):
        return
    block = tree.block(case.statement)
    if case.finding.data.get("between"):
        added = insert_before(tree, case.statement, f"{name}.zero_grad()")
        yield from drafts("clear", f"call `{name}.zero_grad()` before this backward", "unsafe", added)
        return
    if step in block:
        alone = sum(_calls(one, "backward") for one in block) == 1
        safety: Safety = "safe" if alone else "unsafe"
        added = insert_before(tree, _round_start(tree, case.statement), f"{name}.zero_grad()")
        yield from drafts("clear", f"call `{name}.zero_grad()` in each step", safety, added)
        return
    added = insert_after(tree, step, f"{name}.zero_grad()")
    yield from drafts("clear-after", f"call `{name}.zero_grad()` after the step", "unsafe", added)


def _cleared_by_hand(case: FixCase, update: ast.stmt) -> Iterator[Draft]:
    """Drop the gradients that updates by hand use, before the next ones are computed."""
    tree = case.tree
    names: list[str] = []
    for statement in tree.block(update):
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load):
                name = tree.segment(node.value)
                if name not in names and is_visible(tree, node.value, update, case.statement):
                    names.append(name)
    place = _round_start(tree, case.statement)
    if not names or tree.scope(update) is not tree.scope(case.statement) or not tree.begins_line(place):
        return
    if any(not name.replace(".", "").isidentifier() for name in names):
        return
    if not set(tree.loops(update)) <= set(tree.loops(case.statement)):
        return
    line = (tree.newline + tree.indent(place)).join(f"{name}.grad = None" for name in names)
    title = f"clear the old gradient of `{'` and `'.join(names)}` first"
    yield from drafts("drop-grads", title, "safe", insert_before(tree, place, line))


def _round_start(tree: Tree, backward: ast.stmt) -> ast.stmt:
    """Where the gradients of a round are best cleared: at its start, or before the backward where that is no loop or
    where something before it looks at gradients."""
    block = tree.block(backward)
    earlier = block[: block.index(backward)]
    loop = tree.parents.get(backward)
    if not isinstance(loop, (ast.For, ast.While)) or block is not loop.body or not earlier:
        return backward
    looks = attributes_in(*earlier) & {"grad", "backward", "step", "zero_grad"}
    return backward if looks or any(isinstance(one, ast.If) for one in earlier) else earlier[0]


def _is_uncalled(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "zero_grad" and ast.unparse(node.value) == name


def _receiver(statement: ast.stmt | None, method: str) -> ast.expr | None:
    """What a statement `receiver.method(...)` is called on."""
    found = receiver(getattr(statement, "value", None), method)
    return found if isinstance(found, (ast.Name, ast.Attribute)) else None


def _calls(statement: ast.AST, method: str) -> int:
    return sum(method_of(node) == method for node in [statement, *own_nodes(statement)])


def is_visible(tree: Tree, holder: ast.expr, there: ast.stmt, here: ast.stmt) -> bool:
    """Whether an expression of one place means the same at another."""
    if tree.scope(there) is tree.scope(here):
        return True
    base = holder
    while isinstance(base, ast.Attribute):
        base = base.value
    if not isinstance(base, ast.Name):
        return False
    if base.id == "self":
        return tree.owner(there) is not None and tree.owner(there) is tree.owner(here)
    return base.id in bound_in(tree.module) and not any(
        base.id in bound_in(tree.scope(place))
        for place in (there, here)
        if not isinstance(tree.scope(place), ast.Module)
    )


def cleared_before_step(case: FixCase) -> Iterator[Draft]:
    """Clear before the backward, or after the step."""
    tree, clearing = case.tree, case.statement
    if case.finding.data.get("accumulating") is True:
        yield from _cleared_after_step(case)
        return
    backward, step = case.step_statement("made"), case.step_statement("needed")
    if case.finding.data.get("is_step_first") is True:
        clearing, step = case.step_statement("written") or clearing, case.statement
    block = tree.block(clearing)
    if backward is not None and step is not None and backward in block and step in block:
        yield from _backward_first(tree, block, backward, step)
    if backward is not None and backward in block and block.index(backward) < block.index(clearing):
        yield from moves("clear-first", tree, clearing, "before", _round_start(tree, backward), "safe")
        return
    if step is not None and step in block and block.index(clearing) < block.index(step):
        yield from moves("clear-last", tree, clearing, "after", step)


def _backward_first(tree: Tree, block: list[ast.stmt], backward: ast.stmt, step: ast.stmt) -> Iterator[Draft]:
    """Run the backward before the step, where its loss is there by then.  Unsafe: another step may have been meant."""
    between = block[block.index(step) : block.index(backward)]
    is_made_between = names_in(backward) & stored_in(*between)
    if between and not is_made_between and not any(_calls(one, "backward") for one in between):
        yield from moves("backward-first", tree, backward, "before", step)


def _cleared_after_step(case: FixCase) -> Iterator[Draft]:
    """Clear only where the gathered gradients have been used.  Unsafe: the steps become larger."""
    tree, holder = case.tree, _receiver(case.statement, "zero_grad")
    loops = tree.loops(case.statement)
    if holder is None or not loops:
        return
    for node in own_nodes(loops[0]):
        if isinstance(node, ast.Expr) and ast.unparse(node.value) == f"{tree.segment(holder)}.step()":
            yield from moves("clear-last", tree, case.statement, "after", node)
            return


def step_without_backward(case: FixCase) -> Iterator[Draft]:
    """Run backward, or pass the closure that does.  Unsafe: which loss is meant is a guess."""
    tree, step = case.tree, case.statement
    scope = tree.scope(step)
    call = getattr(step, "value", None)
    if not isinstance(call, ast.Call):
        return
    for node in own_nodes(scope):
        if isinstance(node, ast.FunctionDef) and not node.args.args and tree.start(node) < tree.start(step):
            if any(_calls(inner, "backward") for inner in node.body) and not call.args:
                patch = Patch(tree.end(call) - 1, tree.end(call) - 1, node.name)
                yield Draft("closure", f"pass `{node.name}` to the step", "unsafe", (patch,))
    if any(_calls(one, "backward") for one in tree.block(step)):
        return
    name = _loss_before(tree, step)
    added = insert_before(tree, step, f"{name}.backward()") if name else None
    yield from drafts("backward", f"call `{name}.backward()` first", "unsafe", added)


def iterator_used_up(case: FixCase) -> Iterator[Draft]:
    """Keep a list of what is gone through twice.  Unsafe: what found nothing so far is done from then on."""
    made = case.step_node("made")
    if not isinstance(made, (ast.Call, ast.GeneratorExp)):
        return
    start, end = case.tree.start(made), case.tree.end(made)
    patches = case.tree.between("list(", made, ")")
    if isinstance(made, ast.GeneratorExp) and case.tree.segment(made).startswith("("):
        patches = (Patch(start, start + 1, "["), Patch(end - 1, end, "]"))
    yield Draft("list", f"store `{shown(case.tree, made)}` as a list", "unsafe", patches)


def _loss_before(tree: Tree, step: ast.stmt) -> str:
    """The name of the last loss that is computed before a step, in its block."""
    block = tree.block(step)
    for earlier in reversed(block[: block.index(step)]):
        if isinstance(earlier, ast.Assign) and isinstance(earlier.targets[0], ast.Name):
            name = earlier.targets[0].id
            if "loss" in name.lower() or "objective" in name.lower() or name in ("nll", "cost"):
                return name
    return ""


def parameters_replaced(case: FixCase) -> Iterator[Draft]:
    """Make the optimizer after the parameters."""
    tree, made = case.tree, case.step_statement("made")
    block = tree.block(case.statement)
    if not isinstance(made, ast.Assign) or made not in block or not isinstance(made.targets[0], ast.Name):
        return
    name = made.targets[0].id
    between = block[block.index(made) + 1 : block.index(case.statement) + 1]
    if not between or any(reads(one, name) for one in between):
        return
    patches = move_after(tree, made, case.statement)
    target = case.statement.targets[0] if isinstance(case.statement, ast.Assign) else None
    replaced = tree.segment(target) if target is not None else case.word("name")
    yield from drafts("optimizer-later", f"create `{name}` after `{replaced}` is replaced", "safe", patches)


def eval_left_on(case: FixCase) -> Iterator[Draft]:
    """Switch back to training mode.  Unsafe: dropout and batch statistics then act again."""
    tree, step, name = case.tree, case.step_statement("needed"), case.word("target")
    holder = _receiver(case.statement, "eval")
    if step is None or holder is None or not name:
        return
    has_name = is_name(holder, *bound_in(tree.scope(step)))
    if not has_name and not is_visible(tree, holder, case.statement, step):
        return
    loops = tree.loops(step)
    place = loops[-1].body[0] if loops else tree.block(step)[0]
    patch = insert_before(tree, place, f"{name}.train()")
    yield from drafts("train-mode", f"call `{name}.train()` first", "unsafe", patch)


def scheduler_first(case: FixCase) -> Iterator[Draft]:
    """Step the schedule after the optimizer.  Unsafe: the learning rates of all rounds move by one."""
    tree, step = case.tree, case.step_statement("needed")
    block = tree.block(case.statement)
    anchor: ast.AST | None = step
    while anchor is not None and anchor not in block:
        anchor = tree.parents.get(anchor)
    if step is None or not isinstance(anchor, ast.stmt) or block.index(anchor) <= block.index(case.statement):
        return
    title = f"move `{shown(tree, case.statement)}` after `{shown(tree, step)}`"
    yield from drafts("schedule-later", title, "unsafe", move_after(tree, case.statement, anchor))


def scaled_used(case: FixCase) -> Iterator[Draft]:
    """Unscale before the gradients are looked at, here or where the function that looks is called."""
    tree, made = case.tree, case.step_statement("made")
    called_on = [receiver(node, "scale") for node in ast.walk(made)] if made is not None else []
    scaler = next(filter(None, called_on), None)
    if made is None or scaler is None:
        return
    name = tree.segment(scaler)
    callers = [tree.statement_at(step.span) for step in case.steps("call")]
    for place in [case.statement, *callers]:
        if place is None or tree.scope(place) is not tree.scope(made):
            continue
        for node in own_nodes(tree.scope(place)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{name}.step" and node.args:
                optimizer = tree.segment(node.args[0])
                patch = insert_before(tree, place, f"{name}.unscale_({optimizer})")
                if patch is not None and tree.start(node) > tree.start(place):
                    safety: Safety = "unsafe" if _calls_between(tree, made, place) else "safe"
                    yield Draft("unscale", f"unscale the gradients of `{optimizer}` first", safety, (patch,))
                    return


def _calls_between(tree: Tree, first: ast.stmt, last: ast.stmt) -> bool:
    """Whether something is called between two statements of one block: it may have changed gradients that were still scaled."""
    block = tree.block(first)
    anchor: ast.AST | None = last
    while anchor is not None and anchor not in block:
        anchor = tree.parents.get(anchor)
    if not isinstance(anchor, ast.stmt):
        return False
    between = block[block.index(first) + 1 : block.index(anchor)]
    return any(isinstance(part, ast.Call) for statement in between for part in ast.walk(statement))


def foreign_gradients(case: FixCase) -> Iterator[Draft]:
    """Clear what the other loss has left, right before the own backward."""
    tree, own, step = case.tree, case.step_statement("written"), case.step_statement("needed")
    holder = _receiver(step, "step")
    if own is None or step is None or holder is None or not is_visible(tree, holder, step, own):
        return
    name = tree.segment(holder)
    patch = insert_before(tree, own, f"{name}.zero_grad()")
    safety: Safety = "safe" if _is_only_backward(tree, case.statement, own, step) else "unsafe"
    yield from drafts("clear", f"call `{name}.zero_grad()` first", safety, patch)


def _is_only_backward(tree: Tree, foreign: ast.stmt, own: ast.stmt, step: ast.stmt) -> bool:
    """Whether no other backward adds to the gradients between the foreign one and the step."""
    block = tree.block(own)
    if step not in block:
        return False
    first = block.index(foreign) + 1 if foreign in block and block.index(foreign) < block.index(own) else 0
    return sum(_calls(one, "backward") for one in block[first : block.index(step)]) == 1


def frozen_moves(case: FixCase) -> Iterator[Draft]:
    """A parameter without a gradient is left alone by its optimizer."""
    statement = case.statement
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        cleared = receiver(statement.value, "zero_")
        if cleared is not None and not statement.value.args:
            patch = Patch(case.tree.end(cleared), case.tree.end(statement), " = None")
            yield Draft("drop-grad", f"set `{shown(case.tree, cleared)}` to None", "unsafe", (patch,))
        return
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute):
        return
    name = case.tree.segment(statement.targets[0].value)
    if statement.targets[0].attr != "requires_grad":
        return
    added = insert_after(case.tree, statement, f"{name}.grad = None")
    yield from drafts("drop-grad", f"set the gradient of `{name}` to None too", "safe", added)
