"""What autograd stands on, and what must be there above."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Protocol

from gradsight.interp.path_state import PathState
from gradsight.interp.python.builtins import Builtins
from gradsight.interp.python.contexts import Contexts
from gradsight.interp.tensors.fact_selection import CaseSelection
from gradsight.model.sites import Syntax
from gradsight.model.tensors import Tensor
from gradsight.model.trace import BackwardRun
from gradsight.model.values import AbsentGrad, Array, Unknown, Value


class ModulesAboveAutograd(Protocol):
    """What autograd needs of modules and optimizers."""

    def backward_done(self, run: BackwardRun, given: dict[str, Value]) -> None: ...

    def escaped_between(self, tensors: set[Tensor], start: int, end: int) -> bool: ...

    def may_clear_between(self, tensors: set[Tensor], start: int, end: int) -> bool: ...

    def unknown_result(
        self, reason: str, args: list[Value], kwargs: dict[str, Value], node: Syntax | None = None
    ) -> Value: ...


class LibrariesAboveAutograd(Protocol):
    """What autograd needs of libraries."""

    def new_method(self, name: str) -> Value: ...


class EntryAboveAutograd(Protocol):
    """What autograd needs of entries."""

    def assumed_tensor(self, value: Unknown) -> Tensor | None: ...

    def is_graph_assumed(self, tensor: Tensor) -> bool: ...

    def prove_differentiated(self, loss: Unknown, node: Syntax) -> None: ...

    def tensor_of(self, value: Unknown) -> Tensor: ...


class AutogradFloor(metaclass=ABCMeta):
    """The lowest class of the floor: holds the path, and the other floors once they are joined."""

    language: Contexts
    objects: Builtins
    facts: CaseSelection
    nn: ModulesAboveAutograd
    libraries: LibrariesAboveAutograd
    entry: EntryAboveAutograd

    def __init__(self, path: PathState) -> None:
        self.path = path

    # What a class needs of one that stands above it on the same floor.

    @abstractmethod
    def absent_grad_used(self, absent: AbsentGrad, node: Syntax) -> None: ...

    @abstractmethod
    def cut_alias(self, tensor: Tensor, op: str, node: Syntax) -> Tensor: ...

    @abstractmethod
    def tensor_from_array(self, array: Array, node: Syntax) -> Tensor: ...

    @abstractmethod
    def write_array(self, array: Array, node: Syntax, op: str, given: list[Value] | None = None) -> None: ...
