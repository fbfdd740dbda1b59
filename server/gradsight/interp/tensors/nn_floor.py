"""What modules and optimizers stand on, and what must be there above."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from gradsight.interp.path_state import PathState
from gradsight.interp.python.builtins import Builtins
from gradsight.interp.python.contexts import Contexts
from gradsight.interp.tensors.fact_selection import CaseSelection
from gradsight.interp.tensors.tensor_api import TensorApi
from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Syntax
from gradsight.model.tensors import Tensor
from gradsight.model.values import Instance, Layer, Module, Unknown, Value


class EntryAboveModules(Protocol):
    """What modules and optimizers need of entries."""

    stand_ins: dict[int, Any]
    in_coats: list[Any]
    making: Literal["", "whole", "part"]

    def scopes_of(self, key: str) -> list[Syntax]: ...

    def purse(self, amount: int) -> AbstractContextManager[None]: ...

    def are_all_plain(self, values: list[Value]) -> bool: ...

    def works_on_data(self, values: list[Value], node: Any) -> bool: ...

    def may_fill(self, args: list[Value], callee: str, node: Syntax) -> None: ...

    def as_graph_tensor(self, value: Value) -> Tensor | None: ...

    def assumed_tensor(self, value: Unknown) -> Tensor | None: ...

    def give_graph(
        self, result: Unknown, tensors: list[Tensor], name: str, node: Syntax, premise: str
    ) -> None: ...

    def graphs_in(self, args: list[Value], kwargs: dict[str, Value]) -> list[Tensor]: ...

    def open_to_parts(self, result: Value, args: list[Value], kwargs: dict[str, Value]) -> None: ...

    def is_applied(self, owner: Instance, name: str, value: Unknown) -> bool: ...

    def meet_arguments(self, args: list[Value], kwargs: dict[str, Value], node: Syntax | None) -> None: ...

    def optimizer_among(self, values: list[Value]) -> Optimizer | None: ...

    def optimizer_given(self, value: Unknown, call: Syntax) -> Value: ...

    def make_stand_in(self, value: Unknown, role: str, key: str, node: Syntax | None) -> Value: ...

    def optimizer_handed(
        self, call: Syntax, args: list[Value], kwargs: dict[str, Value]
    ) -> Optimizer | None: ...

    def prove_graph(self, loss: Unknown, node: Syntax) -> None: ...

    def parameters_given(self, values: list[Value]) -> list[Value]: ...

    def result_of_module(
        self, layer: Layer, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Unknown: ...

    def unknown_module(self, key: str, node: Syntax, is_part: bool = False) -> Layer: ...

    def stand_for_rest(self, module: Instance) -> None: ...

    def meet_applied(self, args: list[Value], node: Syntax | None) -> None: ...

    def unwrapped(self, module: Module, callee: str, args: list[Value], node: Syntax | None) -> Value: ...


class ModulesFloor(metaclass=ABCMeta):
    """The lowest class of the floor: holds the path, and the other floors once they are joined."""

    language: Contexts
    objects: Builtins
    facts: CaseSelection
    autograd: TensorApi
    entry: EntryAboveModules

    def __init__(self, path: PathState) -> None:
        self.path = path

    # What a class needs of one that stands above it on the same floor.

    @abstractmethod
    def call_layer(
        self, layer: Layer, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value: ...

    @abstractmethod
    def call_module(
        self, instance: Instance, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value: ...

    @abstractmethod
    def unknown_result(
        self, reason: str, args: list[Value], kwargs: dict[str, Value], node: Syntax | None = None
    ) -> Value: ...
