"""What modules and optimizers stand on, and what must be there above."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any, Protocol

from gradsight.interp.path_state import PathState
from gradsight.interp.python.builtins import Builtins
from gradsight.interp.python.contexts import Contexts
from gradsight.interp.tensors.fact_selection import CaseSelection
from gradsight.interp.tensors.tensor_api import TensorApi
from gradsight.model.sites import Syntax
from gradsight.model.tensors import Tensor
from gradsight.model.values import Instance, Layer, Opaque, Unknown


class EntryAboveModules(Protocol):
    """What modules and optimizers need of entries."""

    stand_ins: dict[int, Any]

    def are_all_plain(self, values: list[Any]) -> bool: ...

    def assumed_tensor(self, value: Unknown) -> Tensor | None: ...

    def give_graph(
        self, result: Unknown, tensors: list[Tensor], name: str, node: Syntax, premise: str
    ) -> None: ...

    def graphs_in(self, args: list[Any], kwargs: dict[str, Any]) -> list[Tensor]: ...

    def is_applied(self, owner: Instance, name: str, value: Unknown) -> bool: ...

    def meet_arguments(self, args: list[Any], kwargs: dict[str, Any], node: Syntax | None) -> None: ...

    def optimizer_among(self, values: list[Any]) -> Opaque | None: ...

    def parameters_given(self, values: list[Any]) -> list[Any]: ...

    def result_of_module(
        self, layer: Layer, args: list[Any], kwargs: dict[str, Any], node: Syntax
    ) -> Unknown: ...

    def unknown_module(self, key: str, node: Syntax, is_part: bool = False) -> Layer: ...

    def unwrapped(self, module: Any, callee: str, args: list[Any], node: Syntax | None) -> Any: ...


class ModulesFloor(metaclass=ABCMeta):
    """The lowest room: holds the path, and the other floors once they are joined."""

    language: Contexts
    objects: Builtins
    facts: CaseSelection
    autograd: TensorApi
    entry: EntryAboveModules

    def __init__(self, path: PathState) -> None:
        self.path = path

    # What a room needs of one that stands above it on the same floor.

    @abstractmethod
    def call_layer(self, layer: Layer, args: list[Any], kwargs: dict[str, Any], node: Syntax) -> Any: ...

    @abstractmethod
    def unknown_result(
        self, reason: str, args: list[Any], kwargs: dict[str, Any], node: Syntax | None = None
    ) -> Unknown: ...
