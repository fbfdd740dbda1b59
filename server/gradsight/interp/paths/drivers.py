"""Classes that a library runs: what nothing in the file starts is started as the library would start it.

A model may give a class the method `__gradsight_driver__`.  Every class of the user that derives from it, and of which
some method that the library calls was not executed yet, gets one object, made by its own `__init__`, and the driver is
executed with it.
"""

from __future__ import annotations

import ast

from gradsight.interp.library_places import DRIVER, is_of_library
from gradsight.model.values import ClassValue, Function

DRIVER_BUDGET = 20_000
DRIVER_PER_LINE = 60
DRIVER_PATHS = 6


def driver_of(cls: ClassValue) -> Function | None:
    """What the library does with an object of a class of the user's."""
    found, _ = cls.find(DRIVER)
    return found if isinstance(found, Function) and found.unit.library else None


def called_by_library(cls: ClassValue) -> set[ast.AST]:
    """The user's methods that stand for a method of the library's class."""
    lineage = [one for one in cls.lineage() if isinstance(one, ClassValue)]
    known = {name for one in lineage if is_of_library(one) for name in one.namespace}
    return {
        value.node
        for one in lineage
        if not is_of_library(one)
        for name, value in one.namespace.items()
        if isinstance(value, Function) and name in known and name != "__init__"
    }


def driver_budget(cls: ClassValue) -> int:
    """What driving a class may cost: enough for some rounds of its own code."""
    node = cls.node
    lines = int((node.end_lineno or node.lineno) - node.lineno) if node is not None else 0
    return DRIVER_BUDGET + DRIVER_PER_LINE * lines
