"""The types of the protocol, imported so that each class is built when it is first used.

lsprotocol declares more than five hundred attrs classes; generating their methods is most of the time that importing
pygls takes, and a session needs a few dozen of them.  While lsprotocol is imported here, `attrs.define` only marks a
class; the class is completed, in place, when its fields are asked for or its first instance is made.
The package imports this module before any other, so that nothing imports lsprotocol earlier.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import attrs


class _Unbuilt:
    """Stands for the fields of a class that is not completed yet."""

    def __get__(self, instance: object, owner: type) -> Any:
        _build(owner)
        return owner.__attrs_attrs__  # type: ignore[attr-defined]


def _build(cls: type) -> None:
    """Complete a marked class and resolve the types of its fields."""
    if isinstance(cls.__dict__.get("__attrs_attrs__"), _Unbuilt):
        del cls.__attrs_attrs__  # type: ignore[attr-defined]
        del cls.__init__  # type: ignore[misc]
        attrs.define(cls, slots=False)
        attrs.resolve_types(cls, types.ALL_TYPES_MAP, {})


def _first_init(self: object, *args: Any, **kwargs: Any) -> None:
    _build(type(self))
    type(self).__init__(self, *args, **kwargs)


def _mark(cls: type) -> type:
    """Takes the place of a bare `@attrs.define`."""
    cls.__attrs_attrs__ = _Unbuilt()  # type: ignore[attr-defined]
    cls.__init__ = _first_init  # type: ignore[misc]
    return cls


def _import_marked() -> None:
    """Import lsprotocol with its classes marked; if somebody imported it before, it stays as it is."""
    if "lsprotocol.types" in sys.modules:
        return
    define = attrs.define
    attrs.define = lambda cls=None, **options: (  # type: ignore[assignment]
        define(cls, **options) if cls is None or options else _mark(cls)
    )
    try:
        importlib.import_module("lsprotocol.types")
    finally:
        attrs.define = define
    from lsprotocol import _hooks

    # Each class resolves its own types when it is built.
    _hooks._resolved_forward_references = True


_import_marked()
from lsprotocol import types  # noqa: E402

__all__ = ["types"]
