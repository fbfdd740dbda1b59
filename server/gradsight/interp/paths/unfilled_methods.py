"""What the methods of a module that are left to other classes give: `@abstractmethod def loss_of(self, batch): ...`.

*Stands for others*: the module that a method, or a library, is executed on by itself, if its class leaves methods to the classes
that derive from it.  What such a method returns depends on the module's parameters, as soon as the program treats it so.
"""

from __future__ import annotations

import ast

from gradsight.interp.path_state import PathState
from gradsight.interp.paths.placeholders import is_placeholder, is_value_used
from gradsight.interp.paths.roles import may_train
from gradsight.interp.syntax import remembered_of
from gradsight.model.values import ClassValue, Function, Instance, Unknown, Value

WHAT_OTHERS_ADD = "<what derived classes add>"


def is_left_to_others(path: PathState, function: Function, owner: Value, node: ast.AST) -> bool:
    """Whether a method of a module that stands for others refuses what it is asked for."""
    return (
        isinstance(owner, Instance)
        and owner.module is not None
        and path.isolated
        and owner.site is None
        and not function.unit.library
        and is_placeholder(function, True)
        and (is_placeholder(function, False) or is_value_used(node, path.frame))
        and is_own(function, owner.cls)
        and not may_train(function.name)
    )


def kept_by_others(function: Function, owner: Instance) -> Unknown:
    """What a property gives that others fill in: it may be a part that is applied."""
    member = Unknown(f"property {function.name}, which other classes fill in")
    member.part_of = owner
    return member


def is_own(function: Function, cls: ClassValue) -> bool:
    """Whether a call of a method of the object leads there: `super().loss_of(batch)` asks for that of one class."""
    found, _ = cls.find(function.name)
    return isinstance(found, Function) and any(piece.node is function.node for piece in found.pieces())


def leaves_methods_open(cls: ClassValue) -> bool:
    """Whether a class of modules refuses what a method of its own asks for."""
    return bool(remembered_of(cls, "methods left open", _methods_left_open))


def _methods_left_open(cls: ClassValue) -> set[str]:
    names = {
        name
        for one in cls.lineage()
        if isinstance(one, ClassValue) and not (one.unit is not None and one.unit.library)
        for name in one.namespace
    }
    return {name for name in names if is_placeholder(cls.find(name)[0], False)}
