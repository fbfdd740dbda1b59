"""What options of the command line are if nobody gives them: the first path goes the way that a plain start of the program goes.

parser.add_argument("--amp", action="store_true")
if args.amp:                      # not taken on the first path
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from gradsight.model.values import Missing, Unknown, Value, is_constant

RANKS = "how many processes there are, or which is this"
MANY_PROCESSES = "whether this is one of many processes"
FLAGS = {"store_true": False, "store_false": True}
NOT_SAID = Missing()


def note_option(options: dict[str, Value], args: list[Value], kwargs: dict[str, Value]) -> None:
    """`parser.add_argument("--name", …)` was called."""
    spelled = [one for one in args if isinstance(one, str) and one.startswith("--")]
    name = kwargs.get("dest") or (spelled[0][2:].replace("-", "_") if spelled else "")
    if not isinstance(name, str) or kwargs.get("required", False) is not False:
        return
    action = kwargs.get("action")
    default = kwargs.get("default", FLAGS.get(action) if isinstance(action, str) else None)
    if name and is_constant(default):
        options[name] = default


def usual_answer(options: dict[str, Value], names: dict[Unknown, str], value: Value) -> bool | None:
    """How a condition on an option is answered if nobody gives the option; None where that is not known."""
    if not options or not isinstance(value, Unknown):
        return None
    if value.asks is None:
        default = _default(options, names, value)
        return None if default is NOT_SAID else bool(default)
    kind, asked, constant = value.asks
    default = _default(options, names, asked)
    if default is NOT_SAID:
        return None
    try:
        return bool(ANSWERS[kind](default, constant))
    except (KeyError, TypeError):
        return None


ANSWERS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "is": operator.is_,
    "in": lambda default, constants: default in constants,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def needs_many_processes(value: Value, choice: bool) -> bool:
    """Whether a condition was decided as it is where `torch.distributed` has been started."""
    if not isinstance(value, Unknown):
        return False
    if value.asks is None:
        return choice and value.reason == MANY_PROCESSES
    kind, asked, constant = value.asks
    if not isinstance(asked, Unknown) or asked.reason != RANKS or kind not in ANSWERS:
        return False
    try:
        return any(bool(ANSWERS[kind](alone, constant)) for alone in (0, 1)) != choice
    except TypeError:
        return False


def usual_number(options: dict[str, Value], names: dict[Unknown, str], value: Value) -> float | None:
    """The number that an option is if nobody gives it; None where that is not known."""
    default = _default(options, names, value) if options and isinstance(value, Unknown) else NOT_SAID
    return default if isinstance(default, (int, float)) and not isinstance(default, bool) else None


def usual_name(options: dict[str, Value], names: dict[Unknown, str], value: Value) -> str:
    """The text that an option is if nobody gives it: `models.__dict__[args.arch]`; empty where that is not known."""
    default = _default(options, names, value) if options else NOT_SAID
    return default if isinstance(default, str) else ""


def _default(options: dict[str, Value], names: dict[Unknown, str], value: Value) -> Value:
    name = names.get(value) if isinstance(value, Unknown) else None
    return options.get(name, NOT_SAID) if name is not None else NOT_SAID
