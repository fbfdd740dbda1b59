"""Which statements of an imported module wait until somebody needs a name they bind.

A workspace module is imported for a few of its names.  A statement that does nothing but bind names can wait; one that
may change something else (a call, a loop, an assignment to an item, a decorator of the workspace that may keep a
registry) is executed when the module is.  A name that several statements bind waits for all of them, in their order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from gradsight.interp.memory import EVERY_CLASS, binders_of
from gradsight.interp.syntax import root_name
from gradsight.model.sites import Unit

IsForeign = Callable[[str, int], bool]
"""Whether an import (module, level) leads out of the workspace."""

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def divide(units: list[Unit], is_foreign: IsForeign) -> tuple[list[Unit], dict[str, list[Unit]]]:
    """The statements to execute at once, and what waits."""
    foreign = foreign_names(units, is_foreign)
    eager = {unit for unit in units if not all(can_wait(statement, foreign) for statement in unit.tree)}
    waiting: dict[str, list[Unit]] = {}
    binding = binders_of(units)
    binding.pop(EVERY_CLASS, None)
    before = -1
    while before != len(eager):
        before = len(eager)
        for binders in binding.values():
            if any(unit in eager for unit in binders):
                # The order of the statements that bind one name decides its value.
                eager.update(binders)
    for name, binders in binding.items():
        if not any(unit in eager for unit in binders):
            waiting[name] = binders
    return [unit for unit in units if unit in eager], waiting


def can_wait(statement: ast.stmt, foreign: set[str]) -> bool:
    """Whether executing a statement does nothing but bind names."""
    if isinstance(statement, DEFINITIONS):
        return all(root_name(decorator) in foreign for decorator in statement.decorator_list)
    if isinstance(statement, ast.Import):
        return True
    if isinstance(statement, ast.ImportFrom):
        return all(alias.name != "*" for alias in statement.names)
    if isinstance(statement, ast.Assign):
        return all(binds_names(target) for target in statement.targets)
    if isinstance(statement, ast.AnnAssign):
        return isinstance(statement.target, ast.Name)
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.If):
        return all(can_wait(inner, foreign) for inner in [*statement.body, *statement.orelse])
    if isinstance(statement, ast.Try):
        handlers = [inner for handler in statement.handlers for inner in handler.body]
        parts = [*statement.body, *handlers, *statement.orelse, *statement.finalbody]
        return all(can_wait(inner, foreign) for inner in parts)
    return isinstance(statement, (ast.Pass, ast.Raise))


def binds_names(target: ast.expr) -> bool:
    """Whether assigning to a target changes nothing but names."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(binds_names(inner) for inner in target.elts)
    return isinstance(target, ast.Name)


BUILT_IN_DECORATORS = {"staticmethod", "classmethod", "property"}


def foreign_names(units: list[Unit], is_foreign: IsForeign) -> set[str]:
    """The names of a module that stand for things outside the workspace, of those its decorators use."""
    wanted = {
        root_name(decorator)
        for unit in units
        for statement in unit.tree
        if isinstance(statement, DEFINITIONS)
        for decorator in statement.decorator_list
    }
    found = set(BUILT_IN_DECORATORS)
    if not wanted:
        return found
    for unit in units:
        for statement in unit.tree:
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    if name in wanted and is_foreign(alias.name, 0):
                        found.add(name)
            elif isinstance(statement, ast.ImportFrom):
                names = {alias.asname or alias.name for alias in statement.names} & wanted
                if names and is_foreign(statement.module or "", statement.level):
                    found |= names
    return found
