"""By which names code outside of a helper holds what the helper was given, and what is held beside it."""

from __future__ import annotations

from gradsight.model.sites import Frame
from gradsight.model.values import Instance, Layer, Unknown, Value


def key_outside(frame: Frame, value: Unknown, key: str) -> str:
    """How the outermost code that has a name for a value spells it: a helper's `model` is the caller's `self.generator`."""
    inner: Frame | None = frame
    while inner is not None:
        receiver = inner.receiver
        if isinstance(receiver, Instance):
            held = next((name for name, one in receiver.attributes.items() if one is value), "")
            key = f"self.{held}" if held else key
        if inner.function is not None and "." not in key:
            key = next((name for name, one in inner.namespace.items() if one is value), key)
        inner = inner.call_site.frame if inner.call_site is not None else None
    return key


def own_modules(frame: Frame, key: str) -> list[Value]:
    """The modules that an object has beside its optimizer, or that a function was given with it."""
    receiver = frame.receiver
    if "." not in key:
        beside = frame.namespace if frame.function is not None else {}
    else:
        beside = receiver.attributes if isinstance(receiver, Instance) else {}
    return [
        value
        for value in beside.values()
        if isinstance(value, Layer) or (isinstance(value, Instance) and value.module is not None)
    ]
