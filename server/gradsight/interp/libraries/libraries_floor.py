"""What libraries stand on, and what must be there above."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Protocol

from gradsight.interp.path_state import PathState
from gradsight.interp.python.builtins import Builtins
from gradsight.interp.python.contexts import Contexts
from gradsight.interp.tensors.checkpoints import Checkpoints
from gradsight.interp.tensors.fact_selection import CaseSelection
from gradsight.interp.tensors.tensor_api import TensorApi
from gradsight.model.sites import Site, Syntax
from gradsight.model.tensors import Tensor
from gradsight.model.values import Function, Module, Names, PythonModule, Unknown, Value


class EntryAboveLibraries(Protocol):
    """What libraries need of entries."""

    def absent_name(self, module: PythonModule, name: str) -> Value: ...

    def applied_modules(self, function: Unknown, args: list[Value]) -> list[Module]: ...

    def argument_as_tensor(self, receiver: Unknown, name: str) -> Tensor | None: ...

    def as_graph_tensor(self, value: Value) -> Tensor | None: ...

    def assumed_tensor(self, value: Unknown) -> Tensor | None: ...

    def bind_waiting(self, names: Names, name: str) -> Value: ...

    def find_module(self, name: str, level: int) -> PythonModule | None: ...

    def give_graph(
        self, result: Unknown, tensors: list[Tensor], name: str, node: Syntax, premise: str
    ) -> None: ...

    def graphs_in(self, args: list[Value], kwargs: dict[str, Value]) -> list[Tensor]: ...

    def open_to_parts(self, result: Value, args: list[Value], kwargs: dict[str, Value]) -> None: ...

    def load_module(self, module: PythonModule) -> PythonModule: ...

    def read_shared(self, names: dict[str, Value], name: str) -> Value: ...

    def module_name(self) -> str: ...

    def place_in(self, function: Function, node: Syntax) -> Site: ...

    def prove_graph(self, loss: Unknown, node: Syntax) -> None: ...

    def prove_differentiated(self, loss: Unknown, node: Syntax) -> None: ...

    def is_returned(self, value: Unknown) -> bool: ...

    def stand_in_for(self, value: Unknown, expression: Syntax | None, method: str = "") -> Value: ...

    def meet_arguments(self, args: list[Value], kwargs: dict[str, Value], node: Syntax | None) -> None: ...

    def parameters_given(self, values: list[Value]) -> list[Value]: ...

    def make_stand_in(self, value: Unknown, role: str, key: str, node: Syntax | None) -> Value: ...

    def tensor_of(self, value: Unknown) -> Tensor: ...


class LibrariesFloor(metaclass=ABCMeta):
    """The lowest class of the floor: holds the path, and the other floors once they are joined."""

    language: Contexts
    objects: Builtins
    facts: CaseSelection
    autograd: TensorApi
    nn: Checkpoints
    entry: EntryAboveLibraries

    def __init__(self, path: PathState) -> None:
        self.path = path

    # What a class needs of one that stands above it on the same floor.

    @abstractmethod
    def make_distribution(
        self, name: str, args: list[Value], kwargs: dict[str, Value], node: Syntax
    ) -> Value: ...
