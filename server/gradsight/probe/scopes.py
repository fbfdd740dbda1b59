"""Which names a program defines and which it asks for, scope by scope, when some of its statements are left out.

A *meaning* is a name in the function that owns it (0 for the module), or an attribute, whoever's it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Meaning = tuple[int, str]
ATTRIBUTES = -1
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(slots=True)
class Meanings:
    """What is defined, on which line first, and what is used."""

    defined: dict[Meaning, int] = field(default_factory=dict)
    used: set[Meaning] = field(default_factory=set)

    def define(self, meaning: Meaning, node: ast.AST) -> None:
        """Something gets a meaning here."""
        line = int(getattr(node, "lineno", 0))
        self.defined[meaning] = min(line, self.defined.get(meaning, line))

    def lost_from(self, before: Meanings) -> set[Meaning]:
        """What is still used and was defined before, or defined earlier."""
        never = 1 << 60
        return {
            meaning
            for meaning, line in before.defined.items()
            if meaning in self.used and self.defined.get(meaning, never) > line
        }


class Scopes:
    """The scopes of a whole program; they stay what they are when statements are left out."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.owned: dict[int, set[str]] = {}
        self.parents: dict[int, int] = {}
        self._note(tree, 0)

    def meanings(self, left_out: set[int]) -> Meanings:
        """What the program defines and uses without the statements of these identities."""
        found = Meanings()
        for node, scope in self._walk(self.tree, 0, left_out):
            for name in _defined(node):
                found.define((self._home(name, scope), name), node)
            found.used |= {(self._home(name, scope), name) for name in _used(node)}
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.define((ATTRIBUTES, node.attr), node)
            elif isinstance(node, ast.Attribute):
                found.used.add((ATTRIBUTES, node.attr))
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                # A method is asked for as an attribute.
                found.define((ATTRIBUTES, node.name), node)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
                found.used.add((ATTRIBUTES, node.target.attr))
        return found

    def _note(self, tree: ast.AST, scope: int) -> None:
        elsewhere: list[tuple[int, list[str]]] = []
        for node, where in self._walk(tree, scope, set()):
            self.owned.setdefault(where, set()).update(_defined(node))
            if isinstance(node, (ast.Nonlocal, ast.Global)):
                elsewhere.append((where, node.names))
        for where, names in elsewhere:
            self.owned[where].difference_update(names)

    def _walk(self, node: ast.AST, scope: int, left_out: set[int]) -> Iterator[tuple[ast.AST, int]]:
        yield node, scope
        inner = scope
        if isinstance(node, _FUNCTIONS):
            inner = id(node)
            self.parents[inner] = scope
        for child in ast.iter_child_nodes(node):
            if id(child) in left_out:
                continue
            # Decorators, defaults and annotations belong to whoever defines the function.
            is_inside = inner != scope and (
                isinstance(child, (ast.stmt, ast.arguments)) or isinstance(node, ast.Lambda)
            )
            yield from self._walk(child, inner if is_inside else scope, left_out)

    def _home(self, name: str, scope: int) -> int:
        """The scope that a name belongs to where it is written."""
        while scope and name not in self.owned.get(scope, ()):
            scope = self.parents.get(scope, 0)
        return scope


def _defined(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return {node.id}
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.arg):
        return {node.arg}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(each.asname or each.name).split(".")[0] for each in node.names}
    return {node.name} if isinstance(node, ast.ExceptHandler) and node.name else set()


def _used(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
        return {node.id}
    if isinstance(node, (ast.Nonlocal, ast.Global)):
        return set(node.names)
    # `x += 1` asks for `x` too.
    return (
        {node.target.id} if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) else set()
    )
