"""Attributes of torch and Python that listen for us, and the way back: each is put where it was, the same object.

Somebody else may have put a wrapper of their own around ours since.  Theirs stays, and ours inside it falls silent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_ABSENT = object()


class Patches:
    """What was put into other people's namespaces, newest last."""

    def __init__(self) -> None:
        self.active = True
        self.places: list[tuple[Any, str]] = []
        self._undo: list[Callable[[], None]] = []

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Sets an attribute of a module or a class."""
        before = vars(owner).get(name, _ABSENT)

        def restore() -> None:
            if vars(owner).get(name, _ABSENT) is not value:
                return
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        setattr(owner, name, value)
        self.places.append((owner, name))
        self._undo.append(restore)

    def at_end(self, undo: Callable[[], None]) -> None:
        """Something else to take back."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Takes everything back, newest first."""
        self.active = False
        while self._undo:
            self._undo.pop()()
