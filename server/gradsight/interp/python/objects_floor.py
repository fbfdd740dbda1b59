"""What objects stand on, and what must be there above."""

from __future__ import annotations

import ast
from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from typing import Protocol

from gradsight.interp.path_state import PathState
from gradsight.interp.python.contexts import Contexts
from gradsight.interp.python.loops import Loops
from gradsight.model.tensors import Tensor
from gradsight.model.values import (
    AbsentGrad,
    Array,
    ClassValue,
    External,
    Function,
    Instance,
    Layer,
    Module,
    Opaque,
    PythonModule,
    Super,
    Unknown,
    Value,
)


class AutogradAboveObjects(Protocol):
    """What objects need of autograd."""

    def absent_grad_used(self, absent: AbsentGrad, node: ast.AST) -> None: ...

    def array_method(
        self, array: Array, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def number_from(self, tensor: Tensor, name: str, node: ast.AST) -> Value: ...

    def set_tensor_attribute(
        self, tensor: Tensor, name: str, value: Value, node: ast.AST, augmented: bool
    ) -> None: ...

    def tensor_attribute(self, tensor: Tensor, name: str, node: ast.AST) -> Value: ...

    def tensor_item(self, tensor: Tensor, index: Value, node: ast.AST) -> Value: ...

    def tensor_method(
        self, tensor: Tensor, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def unbind_rows(self, tensor: Tensor, count: int) -> list[Value]: ...

    def write_array(self, array: Array, node: ast.AST, op: str, given: list[Value] | None = None) -> None: ...

    def write_item(self, tensor: Tensor, index: Value, value: Value, node: ast.AST) -> None: ...


class ModulesAboveObjects(Protocol):
    """What objects need of modules and optimizers."""

    def escape(self, args: list[Value], kwargs: dict[str, Value]) -> None: ...

    def layer_attribute(self, owner: Layer, name: str, node: ast.AST) -> Value: ...

    def derives(self, path: str, base: str) -> bool: ...

    def is_module_path(self, path: str) -> bool: ...

    def is_of_type(self, value: Value, path: str) -> Value: ...

    def layer_item(self, owner: Layer, index: Value) -> Value: ...

    def layer_method(
        self, receiver: Layer, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def module_member(self, owner: Module, name: str, node: ast.AST) -> Value: ...

    def module_method(
        self, module: Module, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def set_module_attribute(self, owner: Module, name: str, value: Value, node: ast.AST) -> None: ...

    def as_entry(self, owner: Module, value: Value, node: ast.AST) -> Value: ...

    def tensors_of(self, module: Module, kind: str) -> list[tuple[str, Tensor]]: ...

    def super_method(
        self, receiver: Super, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def type_of(self, value: Layer | Tensor) -> External: ...

    def unknown_result(
        self, reason: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST | None = None
    ) -> Value: ...


class LibrariesAboveObjects(Protocol):
    """What objects need of libraries."""

    def picked_member(self, owner: Value, name: Value) -> Value: ...

    def apply_custom_function(
        self, cls: ClassValue, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def external_attribute(self, owner: External, name: str) -> Value: ...

    def iterate_opaque(self, value: Opaque, count: int) -> tuple[Iterator[Value], int | None]: ...

    def module_attribute(self, module: PythonModule, name: str) -> Value: ...

    def opaque_attribute(self, owner: Opaque, name: str, node: ast.AST) -> Value: ...

    def opaque_item(self, owner: Opaque, index: Value, node: ast.AST) -> Value: ...

    def opaque_method(
        self, receiver: Opaque, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def set_opaque_attribute(self, owner: Opaque, name: str, value: Value, node: ast.AST) -> None: ...

    def set_opaque_item(self, owner: Opaque, index: Value, value: Value, node: ast.AST) -> None: ...

    def unknown_method(
        self, receiver: Unknown, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...


class EntryAboveObjects(Protocol):
    """What objects need of entries."""

    def assumed_tensor(self, value: Unknown) -> Tensor | None: ...

    def change_shared(self, owner: ClassValue | Function, name: str, value: object) -> bool: ...

    def comes_from_source(self, value: Unknown) -> bool: ...

    def filled_in_elsewhere(
        self, owner: Instance, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def read_shared(self, names: dict[str, Value], name: str) -> Value: ...

    def write_shared(self, names: dict[str, Value], name: str, value: Value) -> None: ...

    def module_name(self) -> str: ...

    def is_returned(self, value: Unknown) -> bool: ...

    def known_stand_in(self, value: Value) -> Value: ...

    def stand_in_for(self, value: Unknown, expression: ast.AST | None, method: str = "") -> Value: ...

    def tensor_of(self, value: Unknown) -> Tensor: ...


class ObjectsFloor(metaclass=ABCMeta):
    """The lowest class of the floor: holds the path, and the other floors once they are joined."""

    loops: Loops
    language: Contexts
    autograd: AutogradAboveObjects
    nn: ModulesAboveObjects
    libraries: LibrariesAboveObjects
    entry: EntryAboveObjects

    def __init__(self, path: PathState) -> None:
        self.path = path

    # What a class needs of one that stands above it on the same floor.

    @abstractmethod
    def get_item(self, owner: Value, index: Value, node: ast.AST) -> Value: ...

    @abstractmethod
    def set_item(self, owner: Value, index: Value, value: Value, node: ast.AST) -> None: ...

    @abstractmethod
    def is_instance(self, value: Value, kind: Value) -> bool | None: ...

    @abstractmethod
    def stored_attribute(self, owner: Instance, name: str, node: ast.AST) -> Value: ...
