"""What loops stand on, and what must be there above."""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterator
from typing import Any, Protocol

from gradsight.interp.path_state import PathState
from gradsight.model.values import Value


class LanguageAboveLoops(Protocol):
    """What loops need of the language."""

    def assign(self, target: ast.expr, value: Value) -> None: ...

    def block(self, body: list[ast.stmt]) -> Generator[Any, Any, Any]: ...

    def evaluate(self, node: ast.AST) -> Value: ...


class ObjectsAboveLoops(Protocol):
    """What loops need of objects."""

    def iterate(self, value: Value, at_least: int = 0) -> tuple[Iterator[Value], int | None]: ...


class LoopsFloor:
    """The lowest class of the floor: holds the path, and the other floors once they are joined."""

    language: LanguageAboveLoops
    objects: ObjectsAboveLoops

    def __init__(self, path: PathState) -> None:
        self.path = path
