"""What options of the command line are if nobody gives them: the first path goes the way that a plain start of the program goes.

parser.add_argument("--amp", action="store_true")
if args.amp:                      # not taken on the first path
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.model.values import Missing, Unknown, Value, is_constant

if TYPE_CHECKING:
    from gradsight.interp.path_state import PathState

FLAGS = {"store_true": False, "store_false": True}
NOT_SAID = Missing()


def note_option(path: PathState, args: list[Value], kwargs: dict[str, Value]) -> None:
    """`parser.add_argument("--name", …)` was called."""
    spelled = [one for one in args if isinstance(one, str) and one.startswith("--")]
    name = kwargs.get("dest") or (spelled[0][2:].replace("-", "_") if spelled else "")
    if not isinstance(name, str) or kwargs.get("required", False) is not False:
        return
    action = kwargs.get("action")
    default = kwargs.get("default", FLAGS.get(action) if isinstance(action, str) else None)
    if name and is_constant(default):
        path.options[name] = default


def usual_answer(path: PathState, value: Value) -> bool | None:
    """How a condition on an option is answered if nobody gives the option; None where that is not known."""
    if not path.options or not isinstance(value, Unknown):
        return None
    if value.asks is None:
        default = _default(path, value)
        return None if default is NOT_SAID else bool(default)
    kind, asked, constant = value.asks
    default = _default(path, asked)
    if default is NOT_SAID:
        return None
    try:
        return bool(ANSWERS[kind](default, constant))
    except (KeyError, TypeError):
        return None


ANSWERS = {
    "==": lambda default, constant: default == constant,
    "is": lambda default, constant: default is constant,
    "in": lambda default, constant: default in constant,
    "<": lambda default, constant: default < constant,
    "<=": lambda default, constant: default <= constant,
    ">": lambda default, constant: default > constant,
    ">=": lambda default, constant: default >= constant,
}


def _default(path: PathState, value: Value) -> Value:
    name = path.setting_names.get(value) if isinstance(value, Unknown) else None
    return path.options.get(name, NOT_SAID) if name is not None else NOT_SAID
