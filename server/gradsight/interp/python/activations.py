"""Functions that call themselves, and how far they are followed.

*Activation*: a call of a function that has not returned.  A chain of them is followed for a few links.  Two kinds of recursion
would cost far more than they tell, and end sooner:

    return self.__dict__.get("flag")        in a property that `__getattribute__` reads: the same question for the third time
    for entry in entries:
        found[entry.name] = look(entry)     in `look`, of values that nobody knows: every round doubles what follows
"""

from __future__ import annotations

import ast

from gradsight.model.sites import Frame
from gradsight.model.values import Function, Unknown, Value, is_constant

MOST_ACTIVATIONS = 6
MOST_QUESTIONS = 2
"""How often one attribute of one object is asked for while it is being answered: its first answer may have changed the object."""
GETTERS = frozenset({"property", "cached"})
HOOKS = frozenset({"__getattribute__", "__getattr__"})
Followed = set[tuple[Frame, ast.AST]]


def is_followed_enough(
    function: Function, args: list[Value], frame: Frame, node: ast.AST, followed: Followed
) -> bool:
    """Whether a call would only repeat what its callers do.  `followed`: the calls inside recursions that were made."""
    active = questions = 0
    is_hook = function.name in HOOKS
    is_getter = is_hook or function.binding in GETTERS
    syntax = function.node
    caller: Frame | None = frame
    while caller is not None:
        running = caller.function
        if running is not None and running.node is syntax:
            active += 1
            questions += is_getter and asks_the_same(caller, args, is_hook)
            if active >= MOST_ACTIVATIONS or questions >= MOST_QUESTIONS:
                return True
        caller = caller.call_site.frame if caller.call_site is not None else None
    if active < 2 or not all(isinstance(value, Unknown) or is_constant(value) for value in args):
        return False
    if (frame, node) in followed:
        return True
    followed.add((frame, node))
    return False


def asks_the_same(caller: Frame, args: list[Value], is_hook: bool) -> bool:
    """Whether an activation of a getter was asked for the same attribute of the same object."""
    if not args or caller.receiver is not args[0]:
        return False
    if not is_hook or len(args) < 2:
        return not is_hook
    named = caller.function.node.args
    parameters = [*named.posonlyargs, *named.args]
    if len(parameters) < 2:
        return False
    key = caller.namespace.get(parameters[1].arg)
    return isinstance(key, str) and isinstance(args[1], str) and key == args[1]
