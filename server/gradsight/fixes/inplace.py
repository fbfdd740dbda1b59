"""Repairs of writes in place (GS1xx)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradsight.fixes.aliases import Standing
from gradsight.fixes.callers import gives_temporaries
from gradsight.fixes.draft import Draft, FixCase, drafts, moves, short, shown
from gradsight.fixes.expressions import appended
from gradsight.fixes.forms import FUNCTION_TWINS
from gradsight.fixes.lines import insert_before, remove, under_no_grad, unwrap
from gradsight.fixes.names import (
    FUNCTIONAL,
    attributes_in,
    is_name,
    meaning,
    method_of,
    names_in,
    own_nodes,
    parameters,
    reach,
)
from gradsight.fixes.out_of_place import Rewrite, rewrite
from gradsight.fixes.sharing import is_inplace_name, roots
from gradsight.fixes.tree import COMPREHENSIONS, FORS, FUNCTIONS, Patch, Tree, heads
from gradsight.fixes.writes import WriteStatement, writes_in
from gradsight.model.fix import Safety
from gradsight.ops.traits import having

TUPLES = having("several")
MODES = ("no_grad", "inference_mode", "set_grad_enabled")


def saved_overwritten(case: FixCase) -> Iterator[Draft]:
    """Write a new tensor, or let the reader keep a copy."""
    statement = case.tree.statement(case.node)
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.FloorDiv):
        # torch has no derivative for `//`, in place or not: no other tensor helps.
        return
    yield from written_anew(case)
    yield from twin_passed(case)
    yield from copy_kept(case)


def twin_passed(case: FixCase) -> Iterator[Draft]:
    """`partial(torch.clamp_, ...)`: the function that makes a new tensor.  Unsafe: others may look at what was written."""
    node = case.node
    passed = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if not isinstance(passed, ast.Attribute) or meaning(case.tree, node.func) != "functools.partial":  # type: ignore[attr-defined]
        return
    package, _, last = meaning(case.tree, passed).rpartition(".")
    if package in ("torch", FUNCTIONAL) and last in FUNCTION_TWINS:
        end = case.tree.end(passed)
        title = f"pass `{case.tree.segment(passed).removesuffix('_')}`, which makes a new tensor"
        yield Draft("twin-passed", title, "unsafe", (Patch(end - 1, end, ""),))


def leaf_written(case: FixCase) -> Iterator[Draft]:
    """An update belongs under no_grad.  A computation makes a new tensor; that is unsafe, because the name then
    stands for a result, and whoever holds the leaf does not see the change."""
    update = without_recording(case)
    if update is not None and is_update(case):
        yield update
        return
    # torch refuses a plain tensor in the place of a module's parameter.
    if not any(isinstance(base, ast.Attribute) for base in _written(case)):
        yield from (draft.unsafe() for draft in written_anew(case, hoist=True))
    if update is not None:
        yield update.unsafe()


def shared_view_written(case: FixCase) -> Iterator[Draft]:
    """Write a new tensor; an expanded one can be cloned where it is made."""
    yield from written_anew(case, hoist=True)
    made = case.step_node("made")
    if case.word("reason") == "overlap" and isinstance(made, ast.expr):
        patches = appended(case.tree, made, ".clone()")
        title = f"clone `{case.word('target') or 'it'}` where it is made"
        yield from drafts("clone-made", title, "safe", patches)


def saved_changed_silently(case: FixCase) -> Iterator[Draft]:
    """Let the reader keep a copy: not where a checkpoint does the write again, before the copy is made again."""
    if not case.finding.data.get("is_run_again"):
        yield from copy_kept(case)


def written_without_grad(case: FixCase) -> Iterator[Draft]:
    """Take the write out of no_grad.  Unsafe: the author may have wanted the gradient not to see it."""
    tree, block = case.tree, case.tree.parents.get(case.statement)
    if not isinstance(block, ast.With):
        return
    yield from _write_moved_out(case, block)
    patches = unwrap(tree, block)
    if patches is not None and len(block.body) > 1:
        yield Draft("unwrap", "run this block with grad mode on", "unsafe", patches)


def _write_moved_out(case: FixCase, block: ast.With) -> Iterator[Draft]:
    """The last write of a block, behind the block and out of place."""
    tree, changed = case.tree, _rewrite_of(case)
    if changed is None or changed.how != "new" or not tree.begins_line(case.statement):
        return
    if block.body[-1] is not case.statement:
        return
    text, end = tree.segment(case.statement, changed.patches), tree.end(case.statement)
    patch = Patch(tree.line_start(tree.start(case.statement)), end, tree.indent(block) + text)
    if len(block.body) == 1:
        patch = Patch(tree.start(block), end, text)
    title = f"make a new `{changed.name}`, with grad mode on"
    yield Draft("out-of-no-grad", title, "unsafe", (patch,))


def step_before_backward(case: FixCase) -> Iterator[Draft]:
    """Step after the backward that needs the old values."""
    needed = case.step_statement("needed")
    if needed is None or needed not in case.tree.block(case.statement):
        return
    if case.tree.start(needed) > case.tree.start(case.statement):
        yield from moves("move-step", case.tree, case.statement, "after", needed)


def alias_changed(case: FixCase) -> Iterator[Draft]:
    """Make it a copy.  Unsafe: values that are read later change, which is what the finding is about."""
    node = case.node
    if case.word("how") == "state_dict" and isinstance(node, ast.expr):
        copied = reach(case.tree, "copy.deepcopy", node)
        if copied is not None:
            patches = (*copied.patches, *case.tree.between(f"{copied.text}(", node, ")"))
            yield Draft("deepcopy", "store a deep copy of the state", "unsafe", patches)
        return
    if case.word("how") == "parts":
        # The old part is gone: a copy of what is there now would hide the fault.
        yield from _assigned_together(case)
        return
    yield from _stored_copies(case)
    yield from _returned_copies(case)
    for source in (case.step_node("made"), node):
        value = source.value if isinstance(source, ast.Assign) else source
        if method_of(value).endswith("_"):
            # A copy of what a write gives back comes after the write.
            continue
        if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) and roots(case.tree, value):
            cloned = appended(case.tree, value, ".clone()")
            yield from drafts("clone-alias", f"clone `{shown(case.tree, value)}`", "unsafe", cloned)
    yield from (draft.unsafe() for draft in written_anew(case))


def _assigned_together(case: FixCase) -> Iterator[Draft]:
    """Two neighbouring statements that mix the parts of a tensor: one that computes both before it assigns either."""
    tree, first, second = case.tree, case.step_statement("written"), case.statement
    if not isinstance(first, ast.Assign) or not isinstance(second, ast.Assign):
        return
    block = tree.block(second)
    sides = ((first.targets[0], second.targets[0]), (first.value, second.value))
    taken_out = (
        remove(tree, second) if first in block and block.index(first) + 1 == block.index(second) else None
    )
    if taken_out is not None and "\n" not in tree.segment(second.value):
        ends = ((tree.end(side), tree.segment(other)) for side, other in sides)
        patches = (*(Patch(end, end, f", {text}") for end, text in ends), taken_out)
        title = f"assign `{shown(tree, sides[0][0])}` and `{shown(tree, sides[0][1])}` in one statement"
        yield Draft("assign-together", title, "unsafe", patches)


def _returned_copies(case: FixCase) -> Iterator[Draft]:
    """A method that writes what its object keeps, and gives it away: it can give away a copy."""
    if case.word("how") != "argument" or not isinstance(scope := case.tree.scope(case.node), ast.FunctionDef):
        return
    for one in own_nodes(scope):
        given = one.value if isinstance(one, ast.Return) else None
        for value in given.elts if isinstance(given, ast.Tuple) else (given,):
            if isinstance(value, ast.Attribute) and ast.unparse(value) == case.word("written"):
                title = f"return a clone of `{short(case.tree.segment(value))}`"
                yield Draft("clone-returned", title, "unsafe", appended(case.tree, value, ".clone()") or ())


def _stored_copies(case: FixCase) -> Iterator[Draft]:
    """A clone of each name that is stored or yielded as it is; which of them helps is seen when it is tried."""
    if case.word("how") != "list":
        return
    tree, written = case.tree, case.step_statement("written")
    places = [case.node, case.step_node("made")]
    if written is not None:
        places += [one for one in own_nodes(tree.scope(written)) if isinstance(one, ast.Yield)]
    for place in places:
        given = place.args if isinstance(place, ast.Call) else [getattr(place, "value", None)]
        for one in _stored_names(given) if isinstance(place, (ast.Call, ast.Yield)) else ():
            title = f"store a clone of `{one.id}`"
            yield Draft("clone-stored", title, "unsafe", appended(tree, one, ".clone()") or ())


def _stored_names(given: Sequence[ast.expr | None]) -> Iterator[ast.Name]:
    for one in given:
        if isinstance(one, ast.Name):
            yield one
        elif isinstance(one, (ast.Tuple, ast.List)):
            yield from _stored_names(one.elts)
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id[:1].isupper():
            yield from _stored_names(one.args)


def written_to_out(case: FixCase) -> Iterator[Draft]:
    """Assign the result; `out=` is never recorded."""
    yield from written_anew(case)


def recorded(case: FixCase) -> Iterator[Draft]:
    """The same value, written out of place."""
    yield from written_anew(case)


# A new tensor instead of a write.


def written_anew(case: FixCase, hoist: bool = False) -> Iterator[Draft]:
    """The statement written out of place, unless the write was only meant for others to see."""
    changed = _rewrite_of(case)
    if changed is None:
        return
    safety = safety_of(case, changed.standing, changed.name)
    if safety is None:
        return
    patches = changed.patches
    if changed.how == "clone" and hoist:
        patches = _hoisted(case.tree, case.statement, changed.name) or patches
    if changed.how == "clone":
        yield Draft("clone-first", f"clone `{short(changed.name)}` before this write", safety, patches)
    elif changed.how == "layer":
        yield Draft("layer", f"use `{changed.name}` without `inplace=True`", safety, patches)
    else:
        names = short(changed.name).replace(" and ", "` and `")
        yield Draft("out-of-place", f"write to a new `{names}`", safety, patches)


def _rewrite_of(case: FixCase) -> Rewrite | None:
    write = write_of(case)
    return rewrite(case.tree, case.statement, write) if write is not None else None


def write_of(case: FixCase) -> WriteStatement | None:
    """The write that a finding speaks of."""
    start, end = case.tree.offsets(case.finding.span)
    best: WriteStatement | None = None
    for write in writes_in(case.tree, case.statement):
        first, last = case.tree.start(write.node), case.tree.end(write.node)
        if (first <= start and end <= last) or (start <= first and last <= end):
            if best is None or write.form != "item":
                best = write
    return best


def safety_of(case: FixCase, known: Standing, name: str) -> Safety | None:
    """How far a rewrite that rebinds a name can be trusted; None when the write matters to others alone."""
    if not known.is_private and not known.read_later:
        return None
    if is_unrecorded(case):
        # A new tensor made here would have no graph, where the old one may have had one.
        return "unsafe"
    if known.is_private:
        return "safe"
    scope = case.tree.scope(case.statement)
    if known.argument and not known.reasons and isinstance(scope, FUNCTIONS):
        if gives_temporaries(case.tree, scope, name):
            return "safe"
    return "unsafe"


def is_unrecorded(case: FixCase) -> bool:
    """Whether the statement runs with grad mode off, by what the finding says or by a block or decorator around it."""
    if case.word("mode") in ("no_grad", "inference"):
        return True
    around = [head for parent in case.tree.ancestors(case.statement) for head in heads(parent)]
    return any(word in ast.unparse(head) for head in around for word in MODES)


def _hoisted(tree: Tree, statement: ast.stmt, name: str) -> tuple[Patch, ...] | None:
    """The clone in front of the outermost loop that does not give the name another tensor."""
    place: ast.stmt | None = None
    for loop in tree.loops(statement):
        if any(is_name(node, name) and isinstance(node.ctx, ast.Store) for node in own_nodes(loop)):
            break
        place = loop
    patch = insert_before(tree, place, f"{name} = {name}.clone()") if place is not None else None
    return (patch,) if patch is not None else None


# A copy for the reader.


def copy_kept(case: FixCase) -> Iterator[Draft]:
    """The operation that keeps the tensor for backward is given, or gives, a clone: no other value changes."""
    saved = case.step_node("saved")
    op, tree = case.word("op") or "it", case.tree
    if not isinstance(saved, ast.expr) or _runs_what_it_is_given(tree, saved):
        return
    if case.word("what") == "result":
        if _is_unpacked(tree, saved) or op in TUPLES:
            return
        patches = appended(tree, saved, ".clone()")
        yield from drafts("clone-result", f"clone the output of `{op}`", "safe", patches)
        return
    if is_inplace_name(method_of(saved)):
        return
    operands = [one for one in _operands(saved) if _speaks_of(case, one)]
    if not operands:
        return
    every = tuple(patch for one in operands for patch in appended(tree, one, ".clone()") or ())
    title = f"pass a clone of `{shown(tree, operands[0])}` to `{op}`"
    safety: Safety = "unsafe" if any(_is_given_by_a_loop(tree, one) for one in operands) else "safe"
    yield Draft("clone-operand", title, safety, every)


def _is_given_by_a_loop(tree: Tree, operand: ast.expr) -> bool:
    """Whether an operand is what a loop goes through: a row of a tensor, say, which the write changes for the next time as well."""
    names = names_in(operand)
    return any(
        isinstance(parent, FORS) and names & names_in(parent.target) for parent in tree.ancestors(operand)
    )


def _runs_what_it_is_given(tree: Tree, node: ast.AST) -> bool:
    """Whether a call is that of a variable: another time it may be a function that takes or gives no tensor."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    for parent in tree.ancestors(node):
        if isinstance(parent, (*FUNCTIONS, ast.Lambda)):
            names = parameters(parent)
        elif isinstance(parent, FORS):
            names = names_in(parent.target)
        elif isinstance(parent, COMPREHENSIONS):
            names = names_in(*(one.target for one in parent.generators))
        else:
            continue
        if node.func.id in names:
            return True
    return False


def _operands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        sides = [_operands(one) if isinstance(one, ast.BinOp) else [one] for one in (node.left, node.right)]
        return sides[0] + sides[1]
    if isinstance(node, ast.Call):
        found = list(node.args)
        found += [keyword.value for keyword in node.keywords if keyword.arg]
        if isinstance(node.func, ast.Attribute):
            found.insert(0, node.func.value)
        return found
    return []


def _speaks_of(case: FixCase, operand: ast.expr) -> bool:
    """Whether an operand may be the tensor that is written."""
    if not isinstance(operand, (ast.Name, ast.Attribute, ast.Subscript)):
        return False
    text = case.tree.segment(operand)
    if text == "self":
        return False
    wanted = [case.word("target"), case.word("written")]
    return any(one and (text == one or text.partition("[")[0] == one.partition("[")[0]) for one in wanted)


def _is_unpacked(tree: Tree, node: ast.AST) -> bool:
    """Whether the value is a tuple that is taken apart at once."""
    parent = tree.parents.get(node)
    return isinstance(parent, ast.Assign) and any(
        isinstance(target, (ast.Tuple, ast.List)) for target in parent.targets
    )


# A write that is meant as an update.


def without_recording(case: FixCase) -> Draft | None:
    """The write, and its neighbours with the same fault, under `torch.no_grad()`."""
    patches = under_no_grad(case.tree, neighbours(case))
    name = case.word("target") or next((case.tree.segment(base) for base in _written(case)), "it")
    title = f"update `{short(name)}` under `torch.no_grad()`"
    return Draft("no-grad", title, "safe", patches) if patches is not None else None


def _written(case: FixCase) -> list[ast.AST]:
    """The tensors that the write of a finding may change."""
    write = write_of(case)
    return roots(case.tree, write.target) if write is not None else []


def neighbours(case: FixCase) -> list[ast.stmt]:
    """The statement and those next to it that have a finding of the same rule."""
    tree = case.tree
    block = tree.block(case.statement)
    flagged = {
        tree.statement_at(one.span)
        for one in case.findings
        if one.code == case.finding.code and one.path == case.finding.path
    }
    first = last = block.index(case.statement)
    while first > 0 and block[first - 1] in flagged:
        first -= 1
    while last + 1 < len(block) and block[last + 1] in flagged:
        last += 1
    return block[first : last + 1]


def is_update(case: FixCase) -> bool:
    """Whether a write to a leaf is an update of a parameter, and no part of a computation."""
    tree = case.tree
    scope = tree.scope(case.statement)
    if "grad" in attributes_in(case.statement):
        return True
    if isinstance(scope, ast.Module) or scope.name == "forward":
        return False
    if scope.name.lstrip("_").startswith(("init", "reset")):
        return True
    return any(
        isinstance(base, ast.Attribute)
        or (isinstance(base, ast.Name) and _loops_over_parameters(tree, case.statement, base.id))
        for base in _written(case)
    )


def _loops_over_parameters(tree: Tree, statement: ast.stmt, name: str) -> bool:
    for loop in tree.loops(statement):
        if isinstance(loop, ast.For) and name in names_in(loop.target):
            return not attributes_in(loop.iter).isdisjoint(("parameters", "named_parameters"))
    return False
