"""The class of an argument that nobody declares: the one class of the file that has all that a function asks of it.

`def update(agent, batch)` that calls `agent.act(...)` and `agent.q1(...)` is about an `Agent` where the file has one class
with `act` and `q1`; one that is only applied, as a model is, is about the file's only model.  What a class is given when an
object of it is made, and keeps as `self.model`, is told by all its methods.  *Own*: what a class defines or sets on `self`; what every module has tells nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from gradsight.interp.memory import EVERY_CLASS
from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.roles import MODULE, deeds_of, is_settings_name, key_of, role_of, words_of
from gradsight.interp.syntax import names_read, remembered, remembered_of, set_on_self
from gradsight.interp.syntax_parts import assigned, parts_of
from gradsight.model.name_hints import suggests
from gradsight.model.sites import Frame
from gradsight.model.values import ClassValue, Function, Pending, Value

OF_EVERY_MODULE = frozenset(
    "parameters named_parameters modules named_modules children named_children buffers named_buffers train eval to cuda cpu "
    "half float double state_dict load_state_dict zero_grad apply requires_grad_ training forward register_forward_hook "
    "register_buffer register_parameter add_module share_memory compile __call__ __class__ __dict__".split()
)
TELLING = 2
"""So many own attributes tell a class; one is enough where the argument is called like it, or applied as the file's only model is."""


def class_asked_for(machine: Machine, outer: Frame, function: Function, name: str) -> ClassValue | None:
    """The only class of the file with everything that the function asks of an argument."""
    return class_of(machine, outer, Asked(name, [name], function.node))


def is_whole_model(machine: Machine, outer: Frame, cls: ClassValue | None) -> bool:
    """Whether a class is called a model, is made from settings alone, and is a part of no other class of its file.

    What such a model is applied to is data: `class Model(nn.Module)` with `def __init__(self, configs, stride=8)`.
    """
    if cls is None or cls.kind != "module" or not suggests("whole model", cls.name):
        return False
    init, _ = cls.find("__init__")
    if not isinstance(init, Function) or init.unit is not cls.unit:
        return False
    signature = init.node.args
    positional = [*signature.posonlyargs, *signature.args][1:]
    needed = positional[: max(0, len(positional) - len(signature.defaults))]
    if len(needed) != 1 or not is_settings_name(needed[0].arg) or None in signature.kw_defaults:
        return False
    machine.asked.add(EVERY_CLASS)
    others = (other for _, other in classes_in(machine, outer.namespace) if other is not cls)
    return not any(other.node is not None and cls.name in names_read(other.node) for other in others)


def class_kept(
    machine: Machine, outer: Frame, cls: ClassValue, init: Function, name: str
) -> ClassValue | None:
    """The same for what an object is given when it is made: what its methods ask of the attributes that keep it counts too."""
    kept = remembered(init.node, f"keeps {name}", lambda node: attributes_that_keep(name, node))
    return class_of(machine, outer, Asked(name, [name, *kept], cls.node or init.node, cls))


class Asked(NamedTuple):
    """An unknown object: what it is called, the names it is known by inside a scope, and a class that it is not of."""

    name: str
    keys: list[str]
    scope: ast.AST
    other_than: ClassValue | None = None


def class_of(machine: Machine, outer: Frame, unknown: Asked) -> ClassValue | None:
    attributes = deeds_of(unknown.scope).attributes
    asked = set().union(*(attributes.get(key, set()) for key in unknown.keys)) - OF_EVERY_MODULE
    is_module = any(role_of(key, [unknown.scope]) == MODULE for key in unknown.keys)
    if not asked:
        return class_called(machine, outer, unknown) if is_module else None
    machine.asked.add(EVERY_CLASS)
    fitting = {
        value: known_as
        for known_as, value in classes_in(machine, outer.namespace)
        if asked <= remembered_of(value, "own", own_of)
        and value is not unknown.other_than
        and (value.kind == "module" or not is_module)
    }
    words = words_of(unknown.name)
    alike = {value: known_as for value, known_as in fitting.items() if words & words_of(value.name)}
    chosen = fitting if len(fitting) == 1 else alike
    if len(chosen) != 1:
        return None
    ((found, known_as),) = chosen.items()
    if any(found in one.lineage() for one in fitting if one is not found):
        # What is called after a class may be of a class that derives from it.
        return None
    machine.asked.add(known_as)
    if len(asked) >= TELLING or found in alike:
        return found
    return found if is_module and class_called(machine, outer, unknown) is found else None


def classes_in(machine: Machine, names: dict[str, Value]) -> Iterator[tuple[str, ClassValue]]:
    """The classes of a file by their names, without those of libraries; which names can be theirs is looked up once."""
    known = machine.program.class_names
    if known is None or known[0] is not names or known[1] != len(names):
        found = [name for name, value in names.items() if isinstance(value, (ClassValue, Pending))]
        known = machine.program.class_names = (names, len(names), found)
    for name in known[2]:
        value = names.get(name)
        if isinstance(value, ClassValue) and value.unit is not None and not value.unit.library:
            yield name, value


def class_called(machine: Machine, outer: Frame, unknown: Asked) -> ClassValue | None:
    """The file's only module that is no part of another, where what is unknown is applied as its `forward` is."""
    calls = [
        call
        for key in unknown.keys
        for call in remembered(unknown.scope, f"calls of {key}", partial(calls_of, key))
    ]
    machine.asked.add(EVERY_CLASS)
    modules = {
        value: known_as for known_as, value in classes_in(machine, outer.namespace) if value.kind == "module"
    }
    read = set().union(*(names_read(one.node) for one in modules if one.node is not None))
    outermost = {one: known_as for one, known_as in modules.items() if known_as not in read}
    if not calls or len(outermost) != 1:
        return None
    ((found, known_as),) = outermost.items()
    forward, _ = found.find("forward")
    if not isinstance(forward, Function) or not all(fits(call, forward.node.args) for call in calls):
        return None
    if has_rivals(unknown) and not words_of(unknown.name) & words_of(found.name):
        # `def __init__(self, g, d)`: of two networks that are applied alike, one at most is meant by the only class.
        return None
    machine.asked.add(known_as)
    return found if found is not unknown.other_than else None


def has_rivals(unknown: Asked) -> bool:
    """Whether the same code is given other modules of which nothing more is known."""
    given = {one.arg for one in parts_of(unknown.scope, ast.arg) if one.annotation is None} - {
        "self",
        unknown.name,
    }
    return any(
        MODULE in (role_of(one, [unknown.scope]), role_of(f"self.{one}", [unknown.scope])) for one in given
    )


def calls_of(key: str, node: ast.AST) -> list[ast.Call]:
    return [part for part in parts_of(node, ast.Call) if key_of(part.func) == key]


def attributes_that_keep(name: str, init: ast.AST) -> list[str]:
    """`self.model` for `self.model = model`."""
    return [
        key_of(target)
        for target, value in assigned(init)
        if isinstance(value, ast.Name) and value.id == name and key_of(target).startswith("self.")
    ]


def fits(call: ast.Call, signature: ast.arguments) -> bool:
    """Whether a method can be called with these arguments; what is unpacked may be any number."""
    names = [one.arg for one in (*signature.posonlyargs, *signature.args)][1:]
    keywords = [one.arg for one in call.keywords]
    is_open = any(isinstance(one, ast.Starred) for one in call.args) or None in keywords
    if len(call.args) > len(names) and not signature.vararg:
        return False
    known = {*names, *(one.arg for one in signature.kwonlyargs)}
    if not signature.kwarg and any(one is not None and one not in known for one in keywords):
        return False
    needed = names[len(call.args) : len(names) - len(signature.defaults)]
    return is_open or all(one in keywords for one in needed)


def own_of(cls: ClassValue) -> set[str]:
    """The names that a class and its bases of the workspace define, or set on their objects."""
    found: set[str] = set()
    for one in cls.lineage():
        if isinstance(one, ClassValue):
            found.update(one.namespace)
            if one.node is not None:
                found |= remembered(one.node, "set on self", set_on_self)
    return found
