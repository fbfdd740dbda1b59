"""The shapes of what an agent may say: a message that has another one is dropped, whoever sent it.

A *shape* is a type, a tuple of shapes of which one fits, a list with the shape of its items, or a table with the shapes of
the keys that must be there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradsight.agent import wire

_NUMBER = (int, float)
_POINT = {"row": int, "column": int}
_PLACE = {"filename": str, "location": _POINT, "end_location": _POINT}
_STEP = {"role": str, "message": str, **_PLACE}
_FAULT = {
    **_PLACE, "kind": str, "message": str, "severity": str, "certainty": str, "related": [_STEP], "evidence": dict,
}  # fmt: skip
_ERROR = {"type": str, "message": str, "location": (None, _POINT)}
_PARAMETER = {"name": str, "shape": list, "grad": str, "norm": (None, *_NUMBER)}
_SEEN = {"shape": list, "dtype": str}
_FACT = {
    "filename": str, "line": int, "name": str, "visits": int, "grad_norm": (None, *_NUMBER), "first": _SEEN, "last": _SEEN,
}  # fmt: skip
_TOUCH = {"filename": str, "line": int, "wrote": bool, "first": int, "last": int}
_FINISHED = {"needed": [list], "made": [list], "first": int, "last": int, "exact": bool}
_REPORT = {
    "error": (None, _ERROR), "faults": [_FAULT], "caught": [_ERROR], "parameters": [_PARAMETER], "facts": [_FACT],
    "visited": {}, "sighted": [list], "graph": (None, {}), "notes": [str], "torch": str, "python": str,
    "seconds": _NUMBER, "stopped": str, "backwards": int, "steps": int, "exit_code": int, "internal_error": str,
}  # fmt: skip
_MAY_BE_MISSING = {"touches": [[_TOUCH]], "touched_makers": [[list]], "finished": [_FINISHED], "training": {}}
_SHAPES: Mapping[str, Any] = {
    wire.HELLO: {"pid": int},
    wire.STARTED: {},
    wire.PROGRESS: {"backwards": int, "steps": int, "faults": int, "seconds": _NUMBER},
    wire.PARTIAL: _REPORT,
    wire.REPORT: _REPORT,
    wire.REFUSED: {"reason": str, "text": str},
    wire.EXITED: {"status": int},
}


def has_shape(message: wire.Message) -> bool:
    """Whether a message of an agent can be read without looking twice."""
    shape = _SHAPES.get(str(message.get("kind")))
    if shape is None or not _fits(message, shape):
        return False
    return all(_fits(message[key], each) for key, each in _MAY_BE_MISSING.items() if key in message)


def _fits(value: Any, shape: Any) -> bool:
    if shape is None:
        return value is None
    if isinstance(shape, tuple):
        return any(_fits(value, each) for each in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(item, shape[0]) for item in value)
    if isinstance(shape, Mapping):
        return isinstance(value, dict) and all(
            key in value and _fits(value[key], each) for key, each in shape.items()
        )
    return isinstance(value, shape) and not (isinstance(value, bool) and shape is int)
