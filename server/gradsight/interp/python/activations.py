"""Functions that call themselves or are called again with the same values, and how far they are followed.

*Activation*: a call of a function that has not returned.  A chain of them is followed for a few links.  Two kinds of recursion
would cost far more than they tell, and end sooner:

    return self.__dict__.get("flag")        in a property that `__getattribute__` reads: the same question for the third time
    for entry in entries:
        found[entry.name] = look(entry)     in `look`, of values that nobody knows: every round doubles what follows

*Repeated call*: one of the same function with the same values as another call in the same activation, `scale(x) + scale(x)`.
Repeated calls in repeated calls double with every function that stands between them; so many of them are followed on a path.
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
MOST_REPEATED = 512
"""How many calls inside of repeated calls that stand in repeated calls are followed on one path."""
Followed = set[tuple[Frame, ast.AST]]


class Activations:
    """The calls of one path that were followed and may be followed again."""

    def __init__(self) -> None:
        self.followed: Followed = set()
        self.repeated = 0

    def refusal(
        self, function: Function, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
    ) -> str:
        """Why a call is not followed, if so."""
        if is_followed_enough(function, args, frame, node, self.followed):
            return "recursion"
        repeats = frame.repeats + is_repeated(function, args, kwargs, frame, node)
        if repeats > 1:
            self.repeated += 1
            if self.repeated > MOST_REPEATED:
                return "the same call inside of the same calls"
        self.repeats = repeats
        return ""

    repeats = 0
    """How many repeated calls there are around what is called now, itself included."""


def is_repeated(
    function: Function, args: list[Value], kwargs: dict[str, Value], frame: Frame, node: ast.AST
) -> bool:
    """Whether another call in this activation was the same.  The next round of a loop is no other call."""
    if frame.calls is None:
        frame.calls = {}
    key = (function.node, *map(id, args), *kwargs, *map(id, kwargs.values()))
    # The values are kept with the call: what is gone could have the identity of something new.
    return frame.calls.setdefault(key, (node, args, kwargs))[0] is not node


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
