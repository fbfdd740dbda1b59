"""What loops stand on, and what must be there above."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Protocol

from gradsight.interp.path_state import PathState


class LanguageAboveLoops(Protocol):
    """What loops need of the language."""

    def assign(self, target: ast.expr, value: Any) -> None: ...

    def block(self, body: list[ast.stmt]) -> Any: ...

    def evaluate(self, node: Any) -> Any: ...


class ObjectsAboveLoops(Protocol):
    """What loops need of objects."""

    def iterate(self, value: Any, at_least: int = 0) -> tuple[Iterator[Any], int | None]: ...


class LoopsFloor:
    """The lowest room: holds the path, and the other floors once they are joined."""

    language: LanguageAboveLoops
    objects: ObjectsAboveLoops

    def __init__(self, path: PathState) -> None:
        self.path = path
