"""The state of a path at a moment, kept so that what executed it can be put back there.

Everything that the path can reach and change holds again what it held then, and every object stays the same object: what is known
by the identity of a value is known of it still.  What belongs to more than the path is left as it is: the source, the facts, the
modules and the names of the file, and what is defined at their top level.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from enum import Enum
from operator import attrgetter
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakSet

from gradsight.interp.path_state import Program
from gradsight.interp.shared_names import EnclosedNames
from gradsight.model.sites import Site, Unit
from gradsight.model.source import Source
from gradsight.model.values import (
    Bound,
    ClassValue,
    External,
    Function,
    Method,
    Names,
    Negated,
    PythonModule,
    Scope,
    Super,
)
from gradsight.ops.table import Table

LEFT_ALONE = (
    type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, type, ModuleType, BuiltinFunctionType, Enum,
    ast.AST, Unit, Source, Program, Table, PythonModule, Names, EnclosedNames, External, WeakSet,
)  # fmt: skip
"""What no path changes, or what the next path finds as this one leaves it."""
NEVER_CHANGED = (Site, Scope, Method, Bound, Negated, Super)
"""What stays as it was made, though it holds what may change."""


class Unsavable(Exception):
    """There is something in the state that cannot be put back, such as an iterator."""


ATOMS: set[type] = {type(None), bool, int, float, str}
"""Kinds of which nothing is kept, as far as they were met; to look no further at them is most of the work."""
CONTAINERS = frozenset({dict, list, set})
Form = Callable[["PathSnapshot", Any], None]
FORMS: dict[type, Form] = {}


class PathSnapshot:
    """What a path held; `shared` are containers and classes that belong to others as well."""

    def __init__(self, root: object, shared: list[object]) -> None:
        self.containers: list[tuple[Any, Any]] = []
        self.empty: list[Any] = []
        """Containers that held nothing: most of them, when a path has hardly begun."""
        self.objects: list[tuple[Any, tuple[str, ...], tuple[Any, ...]]] = []
        self.cells: list[tuple[CellType, Any]] = []
        self.shared = shared
        self.todo: list[Any] = [root]
        seen, todo = {id(one) for one in shared}, self.todo
        while todo:
            one = todo.pop()
            if id(one) not in seen:
                seen.add(id(one))
                kind = type(one)
                form = FORMS.get(kind)
                if form is None:
                    form = FORMS[kind] = form_of(kind)
                    if form is keep_nothing:
                        ATOMS.add(kind)
                form(self, one)

    def restore(self) -> None:
        """Put everything back."""
        for container in self.empty:
            container.clear()
        for container, held in self.containers:
            if type(container) is list:
                container[:] = held
            else:
                container.clear()
                container.update(held)
        for one, names, values in self.objects:
            for name, value in zip(names, values):
                setattr(one, name, value)
        for cell, value in self.cells:
            cell.cell_contents = value


def form_of(kind: type) -> Form:
    """How an object of a kind is kept."""
    if issubclass(kind, LEFT_ALONE):
        return keep_nothing
    if kind in PLAIN_FORMS:
        return PLAIN_FORMS[kind]
    if issubclass(kind, tuple):
        return keep_items
    if kind.__module__.startswith("gradsight."):
        slots = [name for base in kind.__mro__ for name in slots_of(base)]
        if slots and kind.__dictoffset__ == 0:
            return keeping_slots(kind, tuple(slots))
        if not slots:
            return keep_fields
    return refuse


def slots_of(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def is_frozen(kind: type) -> bool:
    """Whether no object of a class changes once it is made; what it holds may."""
    params = getattr(kind, "__dataclass_params__", None)
    return params is not None and params.frozen


def keep_nothing(snapshot: PathSnapshot, one: Any) -> None:
    """It stays as it is."""


def refuse(snapshot: PathSnapshot, one: Any) -> None:
    raise Unsavable(type(one).__name__)


def look_into(snapshot: PathSnapshot, parts: Iterable[Any]) -> None:
    """What is held is kept as well."""
    todo, empty = snapshot.todo, snapshot.empty
    for part in parts:
        kind = type(part)
        if kind in ATOMS:
            continue
        if kind in CONTAINERS and not part:
            empty.append(part)
        else:
            todo.append(part)


def keep_dict(snapshot: PathSnapshot, one: dict[Any, Any]) -> None:
    snapshot.containers.append((one, one.copy()))
    look_into(snapshot, one.values())
    look_into(snapshot, one)


def keep_list(snapshot: PathSnapshot, one: Any) -> None:
    snapshot.containers.append((one, one.copy()))
    look_into(snapshot, one)


def keep_items(snapshot: PathSnapshot, one: Any) -> None:
    look_into(snapshot, one)


def keep_fields(snapshot: PathSnapshot, one: Any) -> None:
    held = one.__dict__
    snapshot.containers.append((held, held.copy()))
    look_into(snapshot, held.values())


def keep_closure(snapshot: PathSnapshot, one: FunctionType) -> None:
    for cell in one.__closure__ or ():
        try:
            snapshot.cells.append((cell, cell.cell_contents))
        except ValueError:
            raise Unsavable("an empty cell") from None
        snapshot.todo.append(cell.cell_contents)


def keep_method(snapshot: PathSnapshot, one: MethodType) -> None:
    snapshot.todo.append(one.__self__)


def keeping_slots(kind: type, slots: tuple[str, ...]) -> Form:
    """How objects of a class with slots are kept."""
    read = attrgetter(*slots, slots[0])
    is_kept = not (issubclass(kind, NEVER_CHANGED) or is_frozen(kind))

    def keep(snapshot: PathSnapshot, one: Any) -> None:
        try:
            values = read(one)
        except AttributeError:
            raise Unsavable(kind.__name__) from None
        if is_kept:
            snapshot.objects.append((one, slots, values))
        look_into(snapshot, values)

    def keep_function(snapshot: PathSnapshot, one: Function) -> None:
        if one.scope.outer is not None and type(one.scope.names) is dict:
            keep(snapshot, one)

    def keep_class(snapshot: PathSnapshot, one: ClassValue) -> None:
        if type(one.namespace) is dict:
            keep(snapshot, one)

    if issubclass(kind, Function):
        return keep_function
    return keep_class if issubclass(kind, ClassValue) else keep


PLAIN_FORMS: dict[type, Form] = {
    dict: keep_dict,
    list: keep_list,
    set: keep_list,
    frozenset: keep_items,
    tuple: keep_items,
    FunctionType: keep_closure,
    MethodType: keep_method,
}
