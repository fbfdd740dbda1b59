"""What the choice of facts stands on, and what must be there above."""

from __future__ import annotations

from typing import Protocol

from gradsight.interp.path_state import PathState
from gradsight.model.sites import Syntax
from gradsight.model.values import Value
from gradsight.ops.fact import Case


class AutogradAboveFacts(Protocol):
    """What the choice of facts needs of autograd."""

    def record(
        self, op: str, case: Case, bound: dict[str, Value], node: Syntax, certain: bool = True
    ) -> Value: ...


class ModulesAboveFacts(Protocol):
    """What the choice of facts needs of modules and optimizers."""

    def unknown_result(
        self, reason: str, args: list[Value], kwargs: dict[str, Value], node: Syntax | None = None
    ) -> Value: ...


class FactsFloor:
    """The lowest class of the floor: holds the path, and the other floors once they are joined."""

    autograd: AutogradAboveFacts
    nn: ModulesAboveFacts

    def __init__(self, path: PathState) -> None:
        self.path = path
