"""The class of an argument that nobody declares: the one class of the file that has all that a function asks of it.

`def update(agent, batch)` that calls `agent.act(...)` and `agent.q1(...)` is about an `Agent` where the file has one class
with `act` and `q1`; one that is only applied, as a model is, is about the file's only model.  *Own*: what a class defines or sets on `self`; what every module has tells nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradsight.interp.memory import EVERY_CLASS
from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.roles import MODULE, deeds_of, role_of, words_of
from gradsight.interp.syntax import names_read, remembered, remembered_of, set_on_self
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.sites import Frame
from gradsight.model.values import ClassValue, Function, Pending, Value

OF_EVERY_MODULE = frozenset(
    "parameters named_parameters modules named_modules children named_children buffers named_buffers train eval to cuda cpu "
    "half float double state_dict load_state_dict zero_grad apply requires_grad_ training forward register_forward_hook "
    "register_buffer register_parameter add_module share_memory compile __call__ __class__ __dict__".split()
)
TELLING = 2
"""So many own attributes tell a class; one is enough where the argument is called like it."""


def class_asked_for(machine: Machine, outer: Frame, function: Function, name: str) -> ClassValue | None:
    """The only class of the file with everything that the function asks of an argument."""
    asked = deeds_of(function.node).attributes.get(name, set()) - OF_EVERY_MODULE
    if not asked:
        return class_called(machine, outer, function, name)
    machine.asked.add(EVERY_CLASS)
    fitting = {
        value: known_as
        for known_as, value in classes_in(machine, outer.namespace)
        if asked <= remembered_of(value, "own", own_of)
    }
    if len(fitting) != 1:
        return None
    ((found, known_as),) = fitting.items()
    machine.asked.add(known_as)
    is_called_alike = bool(words_of(name) & words_of(found.name))
    return found if len(asked) >= TELLING or is_called_alike else None


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


def class_called(machine: Machine, outer: Frame, function: Function, name: str) -> ClassValue | None:
    """The file's only module that is no part of another, where the function applies an argument as its `forward` is."""
    if role_of(name, [function.node]) != MODULE:
        return None
    calls = remembered(function.node, f"calls of {name}", lambda node: calls_of(name, node))
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
    machine.asked.add(known_as)
    return found


def calls_of(name: str, node: ast.AST) -> list[ast.Call]:
    return [
        part
        for part in syntax_parts(node)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == name
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
