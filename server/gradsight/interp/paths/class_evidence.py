"""The class of an argument that nobody declares: the one class of the file that has all that a function asks of it.

`def update(agent, batch)` that calls `agent.act(...)` and `agent.q1(...)` is about an `Agent` where the file has one class
with `act` and `q1`.  *Own*: what a class defines or sets on `self`; what every module has tells nothing.
"""

from __future__ import annotations

from gradsight.interp.memory import EVERY_CLASS
from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.roles import deeds_of, words_of
from gradsight.interp.syntax import remembered, remembered_of, set_on_self
from gradsight.model.sites import Frame
from gradsight.model.values import ClassValue, Function

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
        return None
    machine.asked.add(EVERY_CLASS)
    fitting = {
        value: known_as
        for known_as, value in outer.namespace.items()
        if isinstance(value, ClassValue)
        and value.unit is not None
        and not value.unit.library
        and asked <= remembered_of(value, "own", own_of)
    }
    if len(fitting) != 1:
        return None
    ((found, known_as),) = fitting.items()
    machine.asked.add(known_as)
    is_called_alike = bool(words_of(name) & words_of(found.name))
    return found if len(asked) >= TELLING or is_called_alike else None


def own_of(cls: ClassValue) -> set[str]:
    """The names that a class and its bases of the workspace define, or set on their objects."""
    found: set[str] = set()
    for one in cls.lineage():
        if isinstance(one, ClassValue):
            found.update(one.namespace)
            if one.node is not None:
                found |= remembered(one.node, "set on self", set_on_self)
    return found
