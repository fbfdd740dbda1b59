"""The object that a method is executed on by itself: as its `__init__` makes it, without what other methods do to it."""

from __future__ import annotations

import ast
import contextlib

from gradsight.interp.path_state import PathEnded, RaisedError
from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.roles import called_on_self, deeds_of, role_of
from gradsight.interp.paths.unfilled_methods import WHAT_OTHERS_ADD, leaves_methods_open
from gradsight.interp.syntax import remembered, remembered_of
from gradsight.interp.syntax_parts import assigned, parts_of
from gradsight.model.unfinished import leave_unfinished
from gradsight.model.values import (
    ClassValue,
    Function,
    Instance,
    Layer,
    Mapping,
    ModuleState,
    Seq,
    Unknown,
    Value,
)

CLIPPING = frozenset({"clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grad_value"})
"""Methods and functions that are given a limit for gradients."""


def make_receiver(machine: Machine, cls: ClassValue, given: dict[str, Value] | None = None) -> Instance:
    """An object as its own `__init__` makes it, from unknown arguments but for those that are given."""
    instance = Instance(cls, None)
    if cls.kind == "module":
        instance.module = ModuleState()
        machine.modules_made.append(instance)
    init, _ = cls.find("__init__")
    if isinstance(init, Function):
        defined = init.defined()
        # A place is a line of the class's own text.
        place = cls.node if init.unit is not cls.unit and cls.node is not None else defined.node
        is_made, machine.entry.making = False, "whole"
        with contextlib.suppress(RaisedError, PathEnded), machine.entry.purse(machine.making_budget):
            arguments = {**unknown_roles(defined, cls), **(given or {})}
            machine.language.call_function(init, [instance], arguments, place)
            is_made = True
        machine.entry.making = ""
        if not is_made:
            leave_unfinished(instance)
            machine.executed.discard(defined.node)
            complete(machine, instance)
        if instance.module is not None:
            # Whatever `__init__` could not be followed through: the object exists when a method of it runs.
            instance.module.initialised = True
    else:
        instance.open = instance.open or cls.kind == "plain"
        if cls.kind == "module":
            machine.nn.init_module(instance, [], {}, cls.node or ast.Pass())
    if cls.kind == "module" and leaves_methods_open(cls):
        stand_for_others(machine, instance)
    return instance


def stand_for_others(machine: Machine, instance: Instance) -> None:
    """A module whose class leaves methods to others: it has what they need, which includes something that learns."""
    instance.open = True
    if machine.nn.tensors_of(instance, "parameter") or instance.module is None:
        return
    added = machine.entry.unknown_module(WHAT_OTHERS_ADD, instance.cls.node or ast.Pass(), is_part=True)
    instance.attributes[WHAT_OTHERS_ADD] = added
    instance.module.registered[WHAT_OTHERS_ADD] = "module"
    machine.premises.setdefault(f"what derives from `{instance.cls.name}` has trainable parameters")


def complete(machine: Machine, instance: Instance) -> None:
    """An `__init__` that was not followed to its end: what that of its library sets is there all the same."""
    for one in instance.cls.lineage():
        init = one.namespace.get("__init__") if isinstance(one, ClassValue) else None
        if isinstance(init, Function) and init.unit.library:
            if init.node not in machine.executed and machine.budget > 0:
                known = dict(instance.attributes)
                with contextlib.suppress(RaisedError, PathEnded):
                    machine.language.call_function(init, [instance], {}, instance.cls.node or init.node)
                instance.attributes.update(known)
            return


def unknown_roles(init: Function, cls: ClassValue) -> dict[str, Value]:
    """Arguments of an `__init__` that default to None and that the class applies, or treats as a module or an optimizer.

    So is a limit for gradients, which is kept to clip by it.
    """
    scopes: list[ast.AST] = [
        one.node for one in cls.lineage() if isinstance(one, ClassValue) and one.node is not None
    ]
    signature = init.node.args
    named = [*signature.posonlyargs, *signature.args][-len(init.defaults) :] if init.defaults else []
    return {
        parameter.arg: Unknown(f"argument {parameter.arg}")
        for parameter, default in zip(named, init.defaults)
        if default is None
        and any(is_used(key, scopes) for key in (f"self.{parameter.arg}", f"self._{parameter.arg}"))
    }


def is_used(key: str, scopes: list[ast.AST]) -> bool:
    return bool(role_of(key, scopes)) or any(
        key in deeds_of(scope).called or not CLIPPING.isdisjoint(deeds_of(scope).arguments.get(key, ()))
        for scope in scopes
    )


Assigned = dict[ClassValue, set[str]]


def made_by_file(machine: Machine, cls: ClassValue, names: dict[str, Value]) -> Instance | None:
    """The object of a class that the file's own statements made: `model = Net()`, of which methods may speak by that name."""
    made = {
        id(value): name for name, value in names.items() if isinstance(value, Instance) and value.cls is cls
    }
    if len(made) != 1:
        return None
    (name,) = made.values()
    found = machine.language.load_name(ast.Name(name, ast.Load()))
    return found if isinstance(found, Instance) else None


def forget_state(instance: Instance, depth: int = 0, known: Assigned | None = None) -> None:
    """What other methods than `__init__` assign is not known when a method runs by itself.

    `known`: what methods of the classes of its parts assign; a model has many parts of one class.
    """
    known = {} if known is None else known
    registered = instance.module.registered if instance.module is not None else {}
    for name, value in list(instance.attributes.items()):
        if name not in registered and is_left_to_others(instance.cls, name, value, known):
            instance.attributes[name] = Unknown(f"attribute {name}, which other methods assign")
        elif isinstance(value, Instance) and depth < 2:
            forget_state(value, depth + 1, known)
        else:
            forget_length(value)


def is_left_to_others(cls: ClassValue, name: str, value: Value, known: Assigned) -> bool:
    """Whether other methods than `__init__` decide what an attribute is."""
    assigned = known.get(cls)
    if assigned is None:
        assigned = known[cls] = remembered_of(cls, "assigned outside init", assigned_outside_init)
    if name in assigned and not is_part(value):
        return True
    return value is None and name in remembered_of(cls, "filled outside init", filled_outside_init)


def is_part(value: Value) -> bool:
    """Whether an attribute is an object that is called, or a plain list of modules: other methods exchange them for the like."""
    if isinstance(value, Seq):
        return any(isinstance(item, (Instance, Layer)) and item.module is not None for item in value.items)
    return isinstance(value, Instance) and isinstance(value.cls.find("__call__")[0], Function)


def assigned_outside_init(cls: ClassValue) -> set[str]:
    """Names of attributes that methods assign which do not only help `__init__`."""
    nodes: dict[str, list[ast.AST]] = {}
    for ancestor in cls.lineage():
        methods = ancestor.namespace.values() if isinstance(ancestor, ClassValue) else []
        for method in methods:
            if isinstance(method, Function) and not isinstance(method.defined().node, ast.Lambda):
                for piece in method.pieces():
                    defined = piece.defined()
                    nodes.setdefault(defined.name, []).append(defined.node)
    assigned: dict[str, set[str]] = {}
    for name, pieces in nodes.items():
        names = {one for node in pieces for one in remembered(node, "attributes_set", _attributes_set)}
        if names and name != "__init__":
            assigned[name] = names
    helpers = helpers_of_init(nodes) if assigned else set()
    return {one for name, names in assigned.items() if name not in helpers for one in names}


def filled_outside_init(cls: ClassValue) -> set[str]:
    """Names of attributes that a method other than `__init__` gives something: what is still None waits for that method.

    def __init__(self, data=None):
        self.loader = None
        if data is not None:
            self.set_data(data)        # may be called later instead, before anything is trained
    """
    return {
        name
        for ancestor in cls.lineage()
        if isinstance(ancestor, ClassValue)
        for method in ancestor.namespace.values()
        if isinstance(method, Function) and method.defined().name != "__init__"
        for name in remembered(method.defined().node, "attributes filled", _attributes_filled)
    }


def _attributes_filled(function: ast.AST) -> frozenset[str]:
    return frozenset(
        target.attr
        for target, value in assigned(function)
        if not isinstance(value, ast.Constant)
        and isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
    )


def helpers_of_init(nodes: dict[str, list[ast.AST]]) -> set[str]:
    """`__init__`, and the methods that it calls and no other method does: `self.build_model()`."""
    called: dict[str, frozenset[str]] = {
        name: frozenset().union(*(called_on_self(node) for node in pieces)) for name, pieces in nodes.items()
    }
    helpers = {"__init__"}
    todo = ["__init__"]
    while todo:
        for name in called.get(todo.pop(), ()):
            if name in nodes and name not in helpers:
                helpers.add(name)
                todo.append(name)
    while True:
        others = {name for caller in nodes.keys() - helpers for name in called[caller]}
        if not helpers & others - {"__init__"}:
            return helpers
        helpers -= others - {"__init__"}


def _attributes_set(function: ast.AST) -> frozenset[str]:
    return frozenset(
        inner.attr
        for inner in parts_of(function, ast.Attribute)
        if isinstance(inner.ctx, ast.Store) and isinstance(inner.value, ast.Name)
    )


def forget_length(value: Value, depth: int = 0) -> None:
    """A container of an object whose other methods may have filled it since."""
    if isinstance(value, (Seq, Mapping)) and depth < 3:
        value.exact = value.exact and value.kind == "tuple"
        items = value.items if isinstance(value, Seq) else [*value.items.values(), *value.rest]
        for item in items:
            forget_length(item, depth + 1)
