"""What names mean in a text: how torch is called here, what a dotted expression stands for, which names are bound."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from gradsight.fixes.tree import FUNCTIONS, SCOPES, Patch, Tree

FUNCTIONAL = "torch.nn.functional"


@dataclass(frozen=True, slots=True)
class NameReach:
    """How to write a library name here, and the patches that import it where that is needed."""

    text: str
    patches: tuple[Patch, ...] = ()


def imports(tree: Tree) -> dict[str, str]:
    """Names bound by the imports of a text, and what they stand for."""
    known = tree.notes.get("imports")
    if isinstance(known, dict):
        return known
    found: dict[str, str] = {}
    tree.notes["imports"] = found
    for node in tree.statements():
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.asname:
                    found[name.asname] = name.name
                else:
                    root = name.name.partition(".")[0]
                    found[root] = root
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in node.names:
                found[name.asname or name.name] = f"{node.module}.{name.name}"
    return found


def dotted(node: ast.AST) -> str:
    """`a.b.c` as text, or nothing when the expression is more than names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def last_name(node: ast.AST) -> str:
    """`c` of `a().b.c`, or nothing when the expression ends otherwise."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def method_of(node: ast.AST | None) -> str:
    """The name of the method that an expression calls, or nothing where it calls none."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def receiver(node: ast.AST | None, *methods: str) -> ast.expr | None:
    """What an expression calls one of these methods on."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.value if isinstance(func, ast.Attribute) and func.attr in methods else None


def method_in(owner: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    """The method of a class with a name."""
    return next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == name), None)


def arguments(call: ast.Call) -> list[ast.expr]:
    """What a call is given, by place and by name."""
    return [*call.args, *(word.value for word in call.keywords)]


def is_name(node: ast.AST | None, *names: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id in names


def is_read(node: ast.AST, name: str) -> bool:
    return is_name(node, name) and isinstance(node.ctx, ast.Load)


def names_in(*nodes: ast.AST) -> set[str]:
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}


def stored_in(*nodes: ast.AST) -> set[str]:
    """The names that are given a value anywhere in some nodes."""
    every = [one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)]
    return {one.id for one in every if isinstance(one.ctx, ast.Store)}


def attributes_in(*nodes: ast.AST, of: str = "") -> set[str]:
    """The attributes that are spelled anywhere in some nodes; with `of`, those of one name."""
    every = [one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Attribute)]
    return {one.attr for one in every if not of or is_name(one.value, of)}


def assigns_only(statement: ast.AST, name: str) -> bool:
    """Whether a statement assigns to one target, which is spelled like this."""
    return isinstance(statement, ast.Assign) and [ast.unparse(one) for one in statement.targets] == [name]


def meaning(tree: Tree, node: ast.AST) -> str:
    """The full name of what a dotted expression stands for: `F.relu` is `torch.nn.functional.relu`."""
    text = dotted(node)
    root, _, rest = text.partition(".")
    known = imports(tree).get(root)
    if known is None:
        return ""
    return f"{known}.{rest}" if rest else known


def reach(tree: Tree, full: str, place: ast.AST) -> NameReach | None:
    """How to write a library name such as `torch.no_grad` at a place, importing its package if nobody has."""
    known = imports(tree)
    best = ""
    for name, stands_for in known.items():
        if full == stands_for or full.startswith(stands_for + "."):
            text = name + full[len(stands_for) :]
            if not is_shadowed(tree, name, place) and (not best or len(text) < len(best)):
                best = text
    if best:
        return NameReach(best)
    package = full.partition(".")[0]
    if is_shadowed(tree, package, place) or package in bound_in(tree.module):
        return None
    return NameReach(full, (import_patch(tree, package),))


def import_patch(tree: Tree, package: str) -> Patch:
    """Add `import package` before the first other import, behind the docstring and `from __future__`."""
    body = tree.module.body
    last_future = body[0] if body and is_docstring(body[0]) else None
    for statement in body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            last_future = statement
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            place = tree.line_start(tree.start(statement))
            return Patch(place, place, f"import {package}{tree.newline}")
    if last_future is None:
        place = tree.line_start(tree.start(body[0])) if body else 0
        return Patch(place, place, f"import {package}{tree.newline}")
    place = tree.line_end(tree.end(last_future))
    return Patch(place, place, f"{tree.newline}{tree.newline}import {package}")


def is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement, as the first of its block, would describe it."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def is_shadowed(tree: Tree, name: str, place: ast.AST) -> bool:
    """Whether a function around the place binds the name itself, so that a module's name is hidden there."""
    for parent in tree.ancestors(place):
        if isinstance(parent, FUNCTIONS) and name in bound_in(parent):
            return not any(name in _imported(node) for node in own_nodes(parent))
    return False


def _imported(node: ast.AST) -> set[str]:
    """The names that an import binds."""
    if not isinstance(node, (ast.Import, ast.ImportFrom)):
        return set()
    return {alias.asname or alias.name.partition(".")[0] for alias in node.names}


def bound_in(scope: ast.AST) -> set[str]:
    """The names that a function or module binds itself: parameters, assignments, loops, imports, definitions."""
    names = parameters(scope) if isinstance(scope, FUNCTIONS) else set()
    outer: set[str] = set()
    for node in own_nodes(scope):
        names |= _imported(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            outer |= set(node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names - outer


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return {one.arg for one in every}


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope without what lies inside the functions, classes and lambdas it defines."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, SCOPES):
            waiting.extend(ast.iter_child_nodes(node))


def is_local(tree: Tree, name: str, place: ast.AST) -> bool:
    """Whether assigning the name at the place rebinds what is read there, instead of making a new local name."""
    scope = tree.scope(place)
    if isinstance(scope, ast.Module):
        return not isinstance(tree.parents.get(place), ast.ClassDef)
    if name in bound_in(scope):
        return True
    return any(
        isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names for node in own_nodes(scope)
    )
