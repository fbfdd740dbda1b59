"""What objects stand on, and what must be there above."""

from __future__ import annotations

import ast
from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

from gradsight.interp.path_state import PathState
from gradsight.interp.python.contexts import Contexts
from gradsight.interp.python.loops import Loops
from gradsight.model.tensors import Tensor
from gradsight.model.values import (
    AbsentGrad,
    Array,
    ClassValue,
    External,
    Instance,
    Layer,
    Opaque,
    PythonModule,
    Super,
    Unknown,
)


class AutogradAboveObjects(Protocol):
    """What objects need of autograd."""

    def absent_grad_used(self, absent: AbsentGrad, node: ast.AST) -> None: ...

    def array_method(
        self, array: Array, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any: ...

    def number_from(self, tensor: Tensor, name: str, node: ast.AST) -> Any: ...

    def set_tensor_attribute(
        self, tensor: Tensor, name: str, value: Any, node: ast.AST, augmented: bool
    ) -> None: ...

    def tensor_attribute(self, tensor: Tensor, name: str, node: ast.AST) -> Any: ...

    def tensor_item(self, tensor: Tensor, index: Any, node: ast.AST) -> Any: ...

    def tensor_method(
        self, tensor: Tensor, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any: ...

    def unbind_rows(self, tensor: Tensor, count: int) -> list[Any]: ...

    def write_array(self, array: Array, node: ast.AST, op: str) -> None: ...

    def write_item(self, tensor: Tensor, index: Any, value: Any, node: ast.AST) -> None: ...


class ModulesAboveObjects(Protocol):
    """What objects need of modules and optimizers."""

    def escape(self, args: list[Any], kwargs: dict[str, Any]) -> None: ...

    def layer_attribute(self, owner: Layer, name: str, node: ast.AST) -> Any: ...

    def derives(self, path: str, base: str) -> bool: ...

    def is_module_path(self, path: str) -> bool: ...

    def is_of_type(self, value: Any, path: str) -> Any: ...

    def layer_item(self, owner: Layer, index: Any) -> Any: ...

    def layer_method(
        self, receiver: Layer, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any: ...

    def module_member(self, owner: Any, name: str, node: ast.AST) -> Any: ...

    def module_method(
        self, module: Any, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any: ...

    def set_module_attribute(self, owner: Any, name: str, value: Any, node: ast.AST) -> None: ...

    def super_method(
        self, receiver: Super, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any: ...

    def type_of(self, value: Layer | Tensor) -> External: ...

    def unknown_result(
        self, reason: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST | None = None
    ) -> Unknown: ...


class LibrariesAboveObjects(Protocol):
    """What objects need of libraries."""

    def apply_custom_function(
        self, cls: ClassValue, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any: ...

    def external_attribute(self, owner: External, name: str) -> Any: ...

    def iterate_opaque(self, value: Opaque, count: int) -> tuple[Iterator[Any], int | None]: ...

    def module_attribute(self, module: PythonModule, name: str) -> Any: ...

    def opaque_attribute(self, owner: Opaque, name: str, node: ast.AST) -> Any: ...

    def opaque_item(self, owner: Opaque, index: Any, node: ast.AST) -> Any: ...

    def opaque_method(
        self, receiver: Opaque, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any: ...

    def set_opaque_attribute(self, owner: Opaque, name: str, value: Any, node: ast.AST) -> None: ...

    def set_opaque_item(self, owner: Opaque, index: Any, value: Any, node: ast.AST) -> None: ...

    def unknown_method(
        self, receiver: Unknown, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any: ...


class EntryAboveObjects(Protocol):
    """What objects need of entries."""

    def assumed_tensor(self, value: Unknown) -> Tensor | None: ...

    def comes_from_source(self, value: Unknown) -> bool: ...

    def module_name(self) -> str: ...

    def stand_in_for(self, value: Unknown, expression: ast.AST | None, method: str = "") -> Any: ...


class ObjectsFloor(metaclass=ABCMeta):
    """The lowest room: holds the path, and the other floors once they are joined."""

    loops: Loops
    language: Contexts
    autograd: AutogradAboveObjects
    nn: ModulesAboveObjects
    libraries: LibrariesAboveObjects
    entry: EntryAboveObjects

    def __init__(self, path: PathState) -> None:
        self.path = path

    # What a room needs of one that stands above it on the same floor.

    @abstractmethod
    def is_instance(self, value: Any, kind: Any) -> bool | None: ...

    @abstractmethod
    def stored_attribute(self, owner: Instance, name: str, node: ast.AST) -> Any: ...
