"""Who else can see a tensor: other names, views, containers, callers.

Writing out of place rebinds one name.  Whoever else holds the tensor keeps the old value, so such a rewrite keeps the
meaning of the program only when nobody else looks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from gradsight.fixes.names import (
    arguments,
    attributes_in,
    is_name,
    is_read,
    last_name,
    names_in,
    own_nodes,
    parameters,
)
from gradsight.fixes.sharing import roots
from gradsight.fixes.tree import FORS, FUNCTIONS, LOOPS, WITHS, Scope, Tree

PARTS = frozenset("chunk split split_with_sizes tensor_split unbind hsplit vsplit dsplit".split())
WATCHES = frozenset("retain_grad register_hook register_post_accumulate_grad_hook".split())
"""What hangs on a tensor itself: a new one would not have it."""
STORES = frozenset("append appendleft add insert extend put setdefault update".split())


@dataclass(slots=True)
class Standing:
    """What is known about who sees the tensor behind a name at a write.

    `reasons` says why the name is not its only holder; `read_later` whether the name itself is used after the write.
    """

    reasons: list[str] = field(default_factory=list)
    argument: bool = False
    read_later: bool = False

    @property
    def is_private(self) -> bool:
        return not self.reasons and not self.argument


@dataclass(frozen=True, slots=True)
class Binding:
    """One place that may have given a name its value: `value` is what it was made from, None when that is unknown."""

    place: ast.AST
    value: ast.AST | None


def standing(
    tree: Tree, name: str, write: ast.stmt, is_spared: Callable[[ast.AST | None], bool] = lambda alias: False
) -> Standing:
    """Who sees the tensor that `name` holds when the statement `write` changes it.

    `is_spared` knows the views that share no element with what is written: they do not count.
    """
    scope = tree.scope(write)
    result = Standing(read_later=is_read_after(tree, name, write, scope))
    since: dict[str, int] = {}
    around = _trace_back(tree, name, write, scope, since, result)
    _look_for_holders(tree, scope, write, name, since, around, is_spared, result)
    for known in since:
        if attributes_in(scope, of=known) & WATCHES:
            _note(result, f"{known} has a hook, or keeps its gradient")
    for other in sorted(since.keys() - {name}):
        if is_read_after(tree, other, write, scope):
            _note(result, f"{other} shares its memory and is read later")
    return result


def _trace_back(
    tree: Tree, name: str, write: ast.stmt, scope: Scope, since: dict[str, int], result: Standing
) -> ast.AST | None:
    """Follow the tensor back to where it was made, through the names it was a view of.

    `since` receives each such name with the offset from which it names the tensor.  Returns the outermost loop that
    had to be crossed: in it, what stands below the write has already happened in an earlier round.
    """
    waiting: list[tuple[str, ast.stmt]] = [(name, write)]
    seen: set[tuple[str, ast.stmt]] = set()
    around: ast.AST | None = None
    while waiting:
        known, place = waiting.pop()
        if (known, place) in seen:
            continue
        seen.add((known, place))
        bindings, crossed, argument = reaching(tree, known, place, scope)
        around = crossed or around
        result.argument = result.argument or argument
        if not bindings and not argument:
            _note(result, f"{known} is made elsewhere")
        first = 0 if argument else min((tree.start(one.place) for one in bindings), default=0)
        since[known] = min(first, since.get(known, first))
        for binding in bindings:
            for twin in _chained(binding.place, known):
                if isinstance(twin, ast.Name):
                    since.setdefault(twin.id, tree.start(binding.place))
                else:
                    _note(result, f"{ast.unparse(twin)} holds it")
            if binding.value is None:
                _note(result, f"{known} is bound in a way that is not followed")
            for base in roots(tree, binding.value):
                statement = tree.statement(binding.place)
                if isinstance(base, ast.Name) and statement is not None:
                    waiting.append((base.id, statement))
                else:
                    _note(result, f"{known} is part of {ast.unparse(base)}")
    return around


def _chained(place: ast.AST, name: str) -> list[ast.AST]:
    """The other targets of `name = other = value`, which get the very same tensor."""
    if not isinstance(place, ast.Assign) or len(place.targets) == 1:
        return []
    leaves = [leaf for target in place.targets for leaf in _leaves(target)]
    return [leaf for leaf in leaves if not is_name(leaf, name)]


def _look_for_holders(
    tree: Tree,
    scope: Scope,
    write: ast.stmt,
    name: str,
    since: dict[str, int],
    around: ast.AST | None,
    is_spared: Callable[[ast.AST | None], bool],
    result: Standing,
) -> None:
    """Other names and containers that were given the tensor before the write, or earlier in the same loop."""
    before = tree.start(write)
    nodes = sorted(
        (
            node for node in own_nodes(scope)
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Call, ast.Yield)) and node is not write
            and (tree.start(node) < before or around in [*tree.ancestors(node)])
        ),
        key=tree.start,
    )  # fmt: skip
    grown = True
    while grown:
        grown = False
        for node in nodes:
            place = tree.start(node)
            looped = around in [*tree.ancestors(node)]
            if _gives_parts(node, name):
                continue
            for value, holders in _handed_on(node):
                if not any(
                    isinstance(one, ast.Name) and one.id in since and (looped or since[one.id] <= place)
                    for one in roots(tree, value)
                ):
                    continue
                if is_spared(value) and not _outlives_its_round(tree, holders, write):
                    continue
                for holder in holders:
                    if not isinstance(holder, ast.Name):
                        _note(result, f"{ast.unparse(holder)} holds it")
                    elif holder.id not in since:
                        since[holder.id] = place
                        grown = True


def _gives_parts(node: ast.AST, name: str) -> bool:
    """Whether a name is one of several views that share no element: `a, b = torch.split(x, 4)`."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return False
    return last_name(node.value.func) in PARTS and any(
        isinstance(target, ast.Tuple) and name in names_in(target) for target in node.targets
    )


def _outlives_its_round(tree: Tree, holders: list[ast.AST], write: ast.stmt) -> bool:
    """Whether a name is read in a later round of a loop than it was bound in: its index is then another one."""
    return any(
        not isinstance(holder, ast.Name) or any(_is_read_first(holder.id, loop) for loop in tree.loops(write))
        for holder in holders
    )


def _handed_on(node: ast.AST) -> list[tuple[ast.AST | None, list[ast.AST]]]:
    """What a node hands on without copying it, and who holds it then."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in STORES:
            return [(one, [node.func]) for one in arguments(node)]
        return []
    if isinstance(node, ast.Yield):
        return [(node.value, [node])]
    if isinstance(node, ast.Assign):
        target, value = node.targets[0], node.value
        if len(node.targets) == 1 and isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            if len(target.elts) == len(value.elts):
                return [(part, _leaves(place)) for place, part in zip(target.elts, value.elts)]
        return [(value, [leaf for one in node.targets for leaf in _leaves(one)])]
    return [(getattr(node, "value", None), _leaves(getattr(node, "target", node)))]


def _note(result: Standing, reason: str) -> None:
    if reason not in result.reasons:
        result.reasons.append(reason)


def _leaves(target: ast.AST) -> list[ast.AST]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [leaf for element in target.elts for leaf in _leaves(element)]
    if isinstance(target, ast.Starred):
        return _leaves(target.value)
    return [target]


def reaching(
    tree: Tree, name: str, place: ast.stmt, scope: Scope
) -> tuple[list[Binding], ast.AST | None, bool]:
    """The bindings whose value a name may have at a place, the outermost loop they had to cross to get there,
    and whether a parameter of the function may be among them."""
    found: list[Binding] = []
    crossed: ast.AST | None = None
    child: ast.AST = place
    while True:
        parent = tree.parents.get(child)
        block = tree.block(child) if isinstance(child, ast.stmt) else []
        if child in block:
            for sibling in reversed(block[: block.index(child)]):
                definite = _bindings(sibling, name)
                if definite is not None:
                    found.extend(definite)
                    return found, crossed, False
                found.extend(_bindings_inside(sibling, name))
        if parent is None or parent is scope:
            break
        if isinstance(parent, LOOPS) and isinstance(child, ast.stmt) and child in parent.body:
            if isinstance(parent, FORS) and name in names_in(parent.target):
                found.append(Binding(parent, parent.iter))
                return found, crossed, False
            found.extend(
                one for one in _bindings_inside(parent, name) if not any(one.place is f.place for f in found)
            )
            crossed = parent
        elif isinstance(parent, WITHS) and _is_with_name(parent, name):
            found.append(Binding(parent, None))
            return found, crossed, False
        child = parent
    argument = isinstance(scope, FUNCTIONS) and name in parameters(scope)
    return found, crossed, argument


def every_binding(tree: Tree, node: ast.AST | None, place: ast.stmt, test: Callable[[Binding], bool]) -> bool:
    """Whether an expression is a name whose bindings are all known at a place, and pass a test."""
    if not isinstance(node, ast.Name):
        return False
    bindings, _, argument = reaching(tree, node.id, place, tree.scope(place))
    return not argument and bool(bindings) and all(map(test, bindings))


def _bindings(statement: ast.stmt, name: str) -> list[Binding] | None:
    """The binding of a name by a plain statement, or None when the statement does not surely bind it."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if is_name(target, name):
                return [Binding(statement, statement.value)]
            if isinstance(target, (ast.Tuple, ast.List)) and name in names_in(target):
                return [Binding(statement, _matching_value(target, statement.value, name))]
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        if is_name(statement.target, name):
            return [Binding(statement, statement.value)]
    if isinstance(statement, WITHS):
        return _last_binding(statement.body, name)
    if isinstance(statement, ast.If) and statement.orelse:
        first, second = _last_binding(statement.body, name), _last_binding(statement.orelse, name)
        return first + second if first is not None and second is not None else None
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)) and statement.name == name:
        return [Binding(statement, None)]
    return None


def _last_binding(block: list[ast.stmt], name: str) -> list[Binding] | None:
    known = (_bindings(statement, name) for statement in reversed(block))
    return next((one for one in known if one is not None), None)


def _matching_value(target: ast.Tuple | ast.List, value: ast.AST, name: str) -> ast.AST:
    """The part of the right side that a name of the left side gets, where the two sides match one by one."""
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        for element, part in zip(target.elts, value.elts):
            if is_name(element, name):
                return part
    return value


def _bindings_inside(statement: ast.AST, name: str) -> list[Binding]:
    found = []
    for node in [statement, *own_nodes(statement)]:
        if isinstance(node, ast.stmt) and not isinstance(node, (ast.With, ast.AsyncWith, ast.If)):
            found.extend(_bindings(node, name) or [])
        if isinstance(node, FORS) and name in names_in(node.target):
            found.append(Binding(node, node.iter))
        if isinstance(node, WITHS) and _is_with_name(node, name):
            found.append(Binding(node, None))
        if isinstance(node, ast.NamedExpr) and node.target.id == name:
            found.append(Binding(node, node.value))
    return found


def _is_with_name(statement: ast.With | ast.AsyncWith, name: str) -> bool:
    return name in names_in(*(item.optional_vars for item in statement.items if item.optional_vars))


def is_read_after(tree: Tree, name: str, place: ast.stmt, scope: Scope) -> bool:
    """Whether a name is read after a statement: further down, or from the top of a loop around it, before it is
    bound anew."""
    end = tree.end(place)
    for node in ast.walk(scope):
        if is_read(node, name):
            if tree.start(node) >= end and not _is_rebound_between(tree, name, place, node, scope):
                return True
    return any(_is_read_first(name, loop) for loop in tree.loops(place))


def _is_rebound_between(tree: Tree, name: str, place: ast.stmt, read: ast.AST, scope: Scope) -> bool:
    """Whether a plain statement between the write and the read, on every way to the read, binds the name."""
    statement = tree.statement(read)
    while statement is not None:
        block = tree.block(statement)
        for earlier in block[: block.index(statement)] if statement in block else []:
            if tree.start(earlier) >= tree.end(place) and _bindings(earlier, name) is not None:
                return True
        parent = tree.parents.get(statement)
        if isinstance(parent, FORS) and name in names_in(parent.target):
            if tree.start(parent) >= tree.end(place) and statement in parent.body:
                return True
        if parent is None or parent is scope:
            return False
        statement = tree.statement(parent)
    return False


def _is_read_first(name: str, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether the next round of a loop reads the name before it binds it."""
    if isinstance(loop, ast.While):
        if reads(loop.test, name):
            return True
    elif name in names_in(loop.target):
        return False
    for statement in loop.body:
        binds = _bindings(statement, name) is not None
        if binds and not isinstance(statement, (ast.With, ast.AsyncWith, ast.If)):
            return reads(getattr(statement, "value", None), name)
        if reads(statement, name):
            return True
        if binds:
            return False
    return False


def reads(node: ast.AST | None, name: str) -> bool:
    return node is not None and any(is_read(one, name) for one in ast.walk(node))
