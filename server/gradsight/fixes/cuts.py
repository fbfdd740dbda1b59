"""Repairs of graphs that are cut on the way to the loss (GS2xx)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from gradsight.fixes.aliases import every_binding
from gradsight.fixes.calls import with_keyword
from gradsight.fixes.draft import Draft, FixCase, drafts, short, shown
from gradsight.fixes.expressions import ATOMS, appended, bracketed, without_call, without_method
from gradsight.fixes.kinds import is_plainly_tensor
from gradsight.fixes.lines import remove, under_no_grad, unwrap
from gradsight.fixes.names import (
    arguments,
    assigns_only,
    is_local,
    is_name,
    meaning,
    method_of,
    reach,
    receiver,
)
from gradsight.fixes.tree import FUNCTIONS, Patch, Tree
from gradsight.model.fix import Safety
from gradsight.model.loop_names import loses_at_round_end

REDUCTIONS = frozenset("sum mean max min amax amin prod norm median logsumexp nanmean".split())
SCALARS = frozenset("sum mean item norm dot mse_loss cross_entropy nll_loss l1_loss smooth_l1_loss".split())


def copied(case: FixCase) -> Iterator[Draft]:
    """Stack a list of tensors, or use the tensor itself."""
    call = case.node
    if not isinstance(call, ast.Call) or not call.args or isinstance(call.args[0], ast.Starred):
        return
    given = call.args[0]
    text, converted = case.tree.segment(given), _converted(case.tree, call)
    if _is_tensor(case, given):
        inner = text if isinstance(given, ATOMS) else f"({text})"
        new = inner + converted if converted else bracketed(case.tree, call, given, text)
        patch = case.tree.instead(call, new)
        yield Draft("uncopied", f"use `{short(text)}` itself, with its graph", "safe", (patch,))
        return
    stack = reach(case.tree, "torch.stack", call)
    if stack is None or not _may_be_stacked(given):
        return
    patch = case.tree.instead(call, f"{stack.text}({text}){converted}")
    safety: Safety = "safe" if _is_reduced(case.tree, call) or _holds_scalars(case, given) else "unsafe"
    yield Draft("stack", f"stack {_entries(given, text)}, with their graphs", safety, (*stack.patches, patch))


def _is_tensor(case: FixCase, given: ast.expr) -> bool:
    """Whether torch.tensor is given one tensor, and not a list of them."""
    if isinstance(given, (ast.BinOp, ast.UnaryOp)):
        return True
    if case.word("source") and case.word("source") == case.tree.segment(given):
        return True
    return is_plainly_tensor(case.tree, given, case.statement)


def _converted(tree: Tree, call: ast.Call) -> str:
    """What the keywords of torch.tensor ask for beyond the copy."""
    return "".join(
        f".to({tree.segment(keyword.value)})"
        for keyword in call.keywords
        if keyword.arg in ("dtype", "device")
    )


def _may_be_stacked(given: ast.expr) -> bool:
    if isinstance(given, (ast.List, ast.Tuple)):
        return bool(given.elts) and not any(
            isinstance(one, (ast.Constant, ast.Starred, ast.List, ast.Tuple, ast.UnaryOp))
            for one in given.elts
        )
    return isinstance(given, (ast.Name, ast.Attribute, ast.ListComp))


def _entries(given: ast.expr, text: str) -> str:
    return "the entries" if isinstance(given, (ast.List, ast.ListComp, ast.Tuple)) else f"`{short(text)}`"


def _is_reduced(tree: Tree, node: ast.AST) -> bool:
    """Whether only a reduction sees the value, so that its shape does not matter."""
    parent = tree.parents.get(node)
    if not isinstance(parent, ast.Attribute) or parent.attr not in REDUCTIONS:
        return False
    call = tree.parents.get(parent)
    return isinstance(call, ast.Call) and not arguments(call)


def _holds_scalars(case: FixCase, given: ast.expr) -> bool:
    """Whether every entry of a list is plainly the result of a reduction."""
    return isinstance(given, (ast.List, ast.Tuple)) and all(_is_scalar(case, one) for one in given.elts)


def _is_scalar(case: FixCase, node: ast.AST | None) -> bool:
    if isinstance(node, ast.Call):
        name = method_of(node)
        if name.endswith(("_loss", "cross_entropy", "_logits", "kl_div")):
            return not any(keyword.arg == "reduction" for keyword in node.keywords)
        return name in SCALARS and not arguments(node)
    return every_binding(case.tree, node, case.statement, lambda one: _is_scalar(case, one.value))


def turned_into_number(case: FixCase) -> Iterator[Draft]:
    """Leave the value a tensor.  It is safe only where the number goes straight into the loss: elsewhere it may
    also be logged, stored or compared."""
    call = case.node
    if not isinstance(call, ast.Call) or case.word("cut") == "numpy":
        return
    read = case.step_statement("read")
    is_arithmetic = isinstance(case.tree.parents.get(call), ast.BinOp)
    safety: Safety = "safe" if read is case.statement and is_arithmetic else "unsafe"
    value = receiver(call, "item", "tolist")
    if value is not None:
        title = f"remove `.{method_of(call)}()` from `{shown(case.tree, value)}`"
        yield from drafts("no-number", title, safety, without_method(case.tree, call))
    elif is_name(call.func, "float", "int") and call.args:
        title = f"remove `{call.func.id}()` around `{shown(case.tree, call.args[0])}`"
        yield from drafts("no-number", title, safety, without_call(case.tree, call))


def detached(case: FixCase) -> Iterator[Draft]:
    """Drop the detach.  Unsafe: a stop-gradient may be what the author wanted."""
    op = case.word("op")
    if op not in ("detach", "data"):
        return
    word = ".data" if op == "data" else ".detach()"
    statement, node = case.statement, case.node
    value = receiver(node, method_of(node))
    if isinstance(statement, ast.Assign) and statement.value is node and value is not None:
        if assigns_only(statement, ast.unparse(value)):
            gone = remove(case.tree, statement)
            yield from drafts("no-detach", f"remove `{shown(case.tree, statement)}`", "unsafe", gone)
            return
    patch = without_method(case.tree, node)
    yield from drafts("no-detach", f"remove `{word}` from `{short(_subject(case))}`", "unsafe", patch)


def _subject(case: FixCase) -> str:
    node = case.node.func if isinstance(case.node, ast.Call) else case.node
    return case.tree.segment(node.value) if isinstance(node, ast.Attribute) else "it"


def without_grad(case: FixCase) -> Iterator[Draft]:
    """Let the forward pass be recorded.  Unsafe, but for a tensor of inference mode that a layer has to keep:
    one made under no_grad has the same value and may be kept."""
    tree, node = case.tree, case.node
    made = case.step_node("made") if case.word("refused") == "write" else node
    if case.word("cut") == "inference" and isinstance(made, ast.Call):
        mode = reach(tree, "torch.no_grad", made)
        if mode is not None and meaning(tree, made.func) == "torch.inference_mode":
            patches = (*mode.patches, tree.instead(made.func, mode.text))
            title = "use `torch.no_grad()` instead of `inference_mode()`"
            yield Draft("no-grad-mode", title, "safe", patches)
    function = tree.parents.get(node)
    if isinstance(function, FUNCTIONS) and node in function.decorator_list:
        start = tree.text.rindex("@", 0, tree.start(node))
        patch = Patch(tree.line_start(start), tree.next_line(tree.end(node)), "")
        title = f"remove `@{shown(tree, node)}` from `{function.name}`"
        yield Draft("no-decorator", title, "unsafe", (patch,))
    block = case.statement
    if isinstance(block, ast.With) and len(block.items) == 1 and block.items[0].context_expr is node:
        yield from drafts("unwrap", "run this block with grad mode on", "unsafe", unwrap(tree, block))


def without_gradient(case: FixCase) -> Iterator[Draft]:
    """A sample that is reparametrised.  Unsafe: not every distribution can."""
    node = case.node
    if case.word("cut") == "sample" and isinstance(node, ast.Call) and method_of(node) == "sample":
        end = case.tree.end(node.func)
        yield Draft("rsample", "use `rsample()`", "unsafe", (Patch(end - len("sample"), end, "rsample"),))


def hidden(case: FixCase) -> Iterator[Draft]:
    """As for the cut that is hidden, and `requires_grad` goes with it."""
    cut = case.word("cut")
    if cut == "copy":
        yield from copied(case)
    elif cut == "number":
        yield from (draft.unsafe() for draft in turned_into_number(case))
    elif cut in ("no_grad", "inference"):
        for draft in without_grad(case):
            yield replace(draft, patches=(*draft.patches, *_flags_removed(case)))
    elif cut in ("detach", "data"):
        yield from _shown(case)


def _flags_removed(case: FixCase) -> Iterator[Patch]:
    """Take out `loss.requires_grad = True`, which torch refuses on a value that has a graph."""
    for step in case.steps("made"):
        statement = case.tree.statement_at(step.span)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
            gone = remove(case.tree, statement)
            if statement.targets[0].attr == "requires_grad" and gone is not None:
                yield gone


def _shown(case: FixCase) -> Iterator[Draft]:
    """Drop the detach, the `requires_grad_()` at the end of its chain and the Variable around it."""
    tree = case.tree
    outer = tree.parents.get(case.node)
    if isinstance(outer, ast.Call) and outer.args[:1] == [case.node]:
        if meaning(tree, outer.func).endswith("Variable"):
            title = f"use `{short(_subject(case))}` itself, with its graph"
            yield Draft("no-detach", title, "unsafe", (tree.instead(outer, _subject(case)),))
            return
    for draft in detached(case):
        patches = draft.patches
        top: ast.AST = case.node
        while isinstance(tree.parents.get(top), (ast.Attribute, ast.Call)):
            parent = tree.parents[top]
            if isinstance(parent, ast.Call) and parent.func is not top:
                break
            top = parent
            value = receiver(top, "requires_grad_")
            if value is not None:
                patches = (*patches, Patch(tree.end(value), tree.end(top), ""))
        yield replace(draft, patches=patches)


def parameter_made(case: FixCase) -> Iterator[Draft]:
    """Use the value itself.  Not where an attribute receives it: a module refuses a plain tensor there."""
    call, statement = case.node, case.statement
    if not isinstance(call, ast.Call):
        return
    if isinstance(statement, ast.Assign) and not all(isinstance(one, ast.Name) for one in statement.targets):
        return
    patch = without_call(case.tree, call)
    title = f"use `{shown(case.tree, call.args[0])}` itself"
    yield from drafts("no-parameter", title, "safe", patch)


def gradient_zero(case: FixCase) -> Iterator[Draft]:
    """Let the gradient pass straight through.  Unsafe: it is then an estimate, chosen by us."""
    call = case.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not case.word("cut"):
        return
    given = call.args[0] if call.args and meaning(case.tree, call.func) else call.func.value
    if not isinstance(given, (ast.Name, ast.Attribute)):
        return
    name, text = case.tree.segment(given), case.tree.segment(call)
    new = f"{name} + ({text} - {name}).detach()"
    if isinstance(case.tree.parents.get(call), (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript)):
        new = f"({new})"
    title = f"let the gradient pass through `{case.word('op')}` unchanged"
    yield Draft("straight-through", title, "unsafe", (case.tree.instead(call, new),))


def result_ignored(case: FixCase) -> Iterator[Draft]:
    """Keep the result.  Safe for detach, which changes no value."""
    call, tree = case.node, case.tree
    if not isinstance(case.statement, ast.Expr) or case.statement.value is not call:
        return
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return
    target, method = call.func.value, call.func.attr
    if method.endswith("_"):
        # What is written into a copy: where it should go instead is not to be told from here.
        return
    name = tree.segment(target)
    if isinstance(target, ast.Name) and is_local(tree, target.id, case.statement):
        if any(loses_at_round_end(loop, target.id, case.statement) for loop in tree.loops(case.statement)):
            return
        safety: Safety = "safe" if method == "detach" else "unsafe"
        patch = Patch(tree.start(call), tree.start(call), f"{name} = ")
        yield Draft("keep-result", f"assign the result to `{name}`", safety, (patch,))
    elif isinstance(target, ast.Attribute):
        end, title = tree.end(call.func), f"use `{method}_`, which changes `{short(name)}`"
        yield Draft("in-place", title, "unsafe", (Patch(end, end, "_"),))


def mode_left_off(case: FixCase) -> Iterator[Draft]:
    """Switch recording off for a block, which restores the mode on every way out."""
    tree, statement = case.tree, case.statement
    if not isinstance(statement, ast.Expr) or not _switches(tree, statement, False):
        return
    block = tree.block(statement)
    first = block.index(statement) + 1
    last = next((place for place in range(first, len(block)) if _switches(tree, block[place], True)), None)
    inner = block[first : last if last is not None else len(block)]
    if not inner or (last is None and isinstance(tree.scope(statement), ast.Module)):
        return
    switches = [statement] if last is None else [statement, block[last]]
    safety: Safety = "safe" if last is not None else "unsafe"
    wrapped = under_no_grad(tree, inner, gone=switches)
    yield from drafts("no-grad-block", "use a `with torch.no_grad():` block", safety, wrapped)


def _switches(tree: Tree, statement: ast.stmt, on: bool) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and meaning(tree, call.func).endswith("set_grad_enabled")
        and len(call.args) == 1
        and isinstance(call.args[0], ast.Constant)
        and call.args[0].value is on
    )


def checkpointed(case: FixCase) -> Iterator[Draft]:
    """The checkpoint that needs no input with a gradient."""
    if isinstance(case.node, ast.Call):
        patch = with_keyword(case.tree, case.node, "use_reentrant", "False")
        name = short(case.word("target") or "it")
        yield from drafts("reentrant", f"checkpoint `{name}` with `use_reentrant=False`", "safe", patch)


def target_moves(case: FixCase) -> Iterator[Draft]:
    """Hold the target still.  Unsafe: some methods train both sides."""
    patches = appended(case.tree, case.node, ".detach()")
    yield from drafts("detach-target", f"detach `{shown(case.tree, case.node)}`", "unsafe", patches)
