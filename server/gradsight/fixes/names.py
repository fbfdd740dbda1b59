"""What names mean in a text: how torch is called here, what a dotted expression stands for, which names are bound."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradsight.fixes.tree import SCOPES, Patch, Tree

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
    last_future: ast.stmt | None = None
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        last_future = body[0]
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


def is_shadowed(tree: Tree, name: str, place: ast.AST) -> bool:
    """Whether a function around the place binds the name itself, so that a module's name is hidden there."""
    for parent in tree.ancestors(place):
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and name in bound_in(parent):
            return not _imported_in(parent, name)
    return False


def _imported_in(scope: ast.AST, name: str) -> bool:
    return any(
        (alias.asname or alias.name.partition(".")[0]) == name
        for node in own_nodes(scope)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    )


def bound_in(scope: ast.AST) -> set[str]:
    """The names that a function or module binds itself: parameters, assignments, loops, imports, definitions."""
    names: set[str] = set()
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        names |= parameters(scope)
    outer: set[str] = set()
    for node in own_nodes(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
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
