"""Names that belong to a module which many paths use."""

from __future__ import annotations

from typing import TypeGuard

from gradsight.model.values import Names, PythonModule, Value


class EnclosedNames(dict[str, Value]):
    """The namespace of a class of a shared module, or of a call that a function of it closes over."""

    __slots__ = ("module",)
    shared = True

    def __init__(self, module: PythonModule, names: dict[str, Value]) -> None:
        super().__init__(names)
        self.module = module


def is_shared(names: dict[str, Value]) -> TypeGuard[Names | EnclosedNames]:
    """Whether what one path binds here must not be seen by another."""
    return isinstance(names, (Names, EnclosedNames)) and names.shared
