"""What the callers of a function give it, as far as they stand in the same text."""

from __future__ import annotations

import ast

from gradsight.fixes.aliases import standing
from gradsight.fixes.names import assigns_only, last_name, meaning
from gradsight.fixes.sharing import roots
from gradsight.fixes.tree import FunctionNode, Tree


def gives_temporaries(tree: Tree, function: FunctionNode, parameter: str) -> bool:
    """Whether every call in the text hands over a value for the parameter that nobody looks at again.

    Without a single call to look at, the answer is no.
    """
    calls = calls_of(tree, function)
    if not calls:
        return False
    return all(_is_temporary(tree, function, call, parameter) for call in calls)


def calls_of(tree: Tree, function: FunctionNode) -> list[ast.Call] | None:
    """The calls of a function, or of the `forward` of a module's instances; None when some cannot be followed."""
    calls = [node for node in ast.walk(tree.module) if isinstance(node, ast.Call)]
    if function.name != "forward":
        return [call for call in calls if last_name(call.func) == function.name]
    owner = tree.owner(function)
    if owner is None:
        return None
    names: set[str] = set()
    for call in calls:
        if last_name(call.func) == owner.name:
            holder = _holder(tree, call)
            if holder is None:
                return None
            if holder:
                names.add(holder)
    return [call for call in calls if last_name(call.func) in names]


def _holder(tree: Tree, made: ast.Call) -> str | None:
    """The name under which an instance is called: empty inside a sequence that feeds it by another layer."""
    parent = tree.parents.get(made)
    if isinstance(parent, ast.Call) and meaning(tree, parent.func).endswith(".Sequential"):
        if parent.args and parent.args[0] is not made:
            return ""
        return _holder(tree, parent)
    if isinstance(parent, ast.Attribute):
        outer = tree.parents.get(parent)
        return _holder(tree, outer) if isinstance(outer, ast.Call) and outer.func is parent else None
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        return last_name(parent.targets[0]) or None
    return None


def _is_temporary(tree: Tree, function: FunctionNode, call: ast.Call, parameter: str) -> bool:
    given = argument(tree, function, call, parameter)
    if given is None:
        return False
    found = roots(tree, given)
    if not found:
        return True
    statement = tree.statement(call)
    if len(found) != 1 or not isinstance(found[0], ast.Name) or statement is None:
        return False
    known, rebinds = standing(tree, found[0].id, statement), assigns_only(statement, found[0].id)
    return known.is_private and (rebinds or not known.read_later)


def argument(tree: Tree, function: FunctionNode, call: ast.Call, parameter: str) -> ast.AST | None:
    """What a call gives for a parameter."""
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.value
    names = [one.arg for one in [*function.args.posonlyargs, *function.args.args]]
    if tree.owner(function) is not None and tree.parents.get(function) is tree.owner(function):
        names = names[1:]
    if parameter not in names or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    place = names.index(parameter)
    return call.args[place] if place < len(call.args) else None
