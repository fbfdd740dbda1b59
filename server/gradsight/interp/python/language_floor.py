"""What the language stands on, and what must be there above."""

from __future__ import annotations

import ast
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from gradsight.interp.path_state import PathState
from gradsight.interp.python.loops import Loops
from gradsight.model.tensors import Tensor
from gradsight.model.values import (
    AbsentGrad,
    ClassValue,
    External,
    Function,
    Instance,
    Layer,
    Mapping,
    Names,
    Opaque,
    Partial,
    Pending,
    PythonModule,
    Seq,
    Unknown,
)


class ObjectsAboveLanguage(Protocol):
    """What the language needs of objects."""

    def builtin_dict(self, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any: ...

    def call_method(
        self, receiver: Any, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any: ...

    def delete_attribute(self, owner: Any, name: str, node: ast.AST) -> None: ...

    def delete_items(self, owner: Seq, index: Any) -> None: ...

    def delete_key(self, mapping: Mapping, key: Any) -> None: ...

    def get_attribute(self, owner: Any, name: str, node: ast.AST) -> Any: ...

    def get_item(self, owner: Any, index: Any, node: ast.AST) -> Any: ...

    def iterate(self, value: Any, at_least: int = 0) -> tuple[Iterator[Any], int | None]: ...

    def mapping_key(self, key: Any) -> Any: ...

    def mapping_method(
        self, receiver: Mapping, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any: ...

    def overload_for(self, function: Function, args: list[Any]) -> Any: ...

    def sequence_method(
        self, receiver: Seq, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any: ...

    def set_attribute(
        self, owner: Any, name: str, value: Any, node: ast.AST, augmented: bool = False
    ) -> None: ...

    def set_item(self, owner: Any, index: Any, value: Any, node: ast.AST) -> None: ...

    def store_key(self, mapping: Mapping, key: Any, value: Any) -> None: ...

    def stored(self, tensor: Tensor, container: Any, node: ast.AST) -> None: ...


class AutogradAboveLanguage(Protocol):
    """What the language needs of autograd."""

    def absent_grad_used(self, absent: AbsentGrad, node: ast.AST) -> None: ...

    def augment(self, node: ast.AugAssign, current: Any, operand: Any) -> Any: ...

    def augment_item(self, node: ast.AugAssign, owner: Tensor, index: Any, operand: Any) -> None: ...

    def call_partial(self, made: Partial, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any: ...

    def tensor_operator(self, name: str, tensor: Tensor, other: Any, node: ast.AST) -> Any: ...

    def unknown_arithmetic(self, name: str, left: Any, right: Any, node: ast.AST) -> Any: ...


class ModulesAboveLanguage(Protocol):
    """What the language needs of modules and optimizers."""

    def call_layer(self, layer: Layer, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any: ...

    def call_mode(self, path: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any: ...

    def call_module(
        self, instance: Instance, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any: ...

    def call_opaque(self, value: Opaque, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any: ...

    def enter_modes(self, modes: tuple[tuple[Any, Any], ...]) -> Callable[[], None]: ...

    def enter_opaque(self, context: Opaque, node: ast.AST) -> tuple[Any, Any]: ...

    def init_module(
        self, instance: Instance, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> None: ...

    def is_mode_path(self, path: str) -> bool: ...

    def is_module_by_text(self, node: ast.AST, bases: list[Any]) -> bool: ...

    def kind_of_base(self, path: str) -> str: ...

    def mode_of(self, value: Any) -> Any: ...

    def undo_mode_call(self, mode: Opaque) -> None: ...

    def unknown_result(
        self, reason: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST | None = None
    ) -> Unknown: ...


class LibrariesAboveLanguage(Protocol):
    """What the language needs of libraries."""

    def call_external(self, path: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any: ...

    def call_unknown(
        self, function: Unknown, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Any: ...

    def deep_copy(self, value: Any, node: ast.AST, memo: dict[int, Any]) -> Any: ...

    def external_attribute(self, owner: External, name: str) -> Any: ...

    def global_name(self, name: str, node: ast.AST) -> Any: ...

    def resolve_import(self, pending: Pending, node: ast.AST) -> Any: ...

    def star_import(self, name: str) -> None: ...


class EntryAboveLanguage(Protocol):
    """What the language needs of entries."""

    def bind_waiting(self, names: Names, name: str) -> Any: ...

    def find_module(self, name: str, level: int) -> PythonModule | None: ...

    def is_spoken_of_as_tensor(self, name: str) -> bool: ...

    def load_module(self, module: PythonModule) -> None: ...

    def missing_argument(self, function: Function, parameter: ast.arg) -> Any: ...

    def tensor_of(self, value: Unknown) -> Tensor: ...


class LanguageFloor(metaclass=ABCMeta):
    """The lowest room: holds the path, and the other floors once they are joined."""

    loops: Loops
    objects: ObjectsAboveLanguage
    autograd: AutogradAboveLanguage
    nn: ModulesAboveLanguage
    libraries: LibrariesAboveLanguage
    entry: EntryAboveLanguage

    def __init__(self, path: PathState) -> None:
        self.path = path

    # What a room needs of one that stands above it on the same floor.

    @abstractmethod
    def any_of(self, conditions: list[Any]) -> Any: ...

    @abstractmethod
    def compare_values(self, op: str, left: Any, right: Any, node: ast.AST) -> Any: ...

    @abstractmethod
    def decorate(self, decorator: ast.expr, function: Any) -> Any: ...

    @abstractmethod
    def decorate_class(self, decorator: ast.expr, value: Any) -> Any: ...

    @abstractmethod
    def do_import(self, node: ast.Import) -> Any: ...

    @abstractmethod
    def do_import_from(self, node: ast.ImportFrom) -> Any: ...

    @abstractmethod
    def enter_context(self, context: Any, node: ast.AST) -> tuple[Any, Any]: ...

    @abstractmethod
    def enter_wrappers(self, wrappers: tuple[tuple[Any, Any], ...]) -> Callable[[], None]: ...

    @abstractmethod
    def evaluate(self, node: Any) -> Any: ...

    @abstractmethod
    def evaluate_call(self, node: ast.Call) -> Any: ...

    @abstractmethod
    def evaluate_index(self, node: ast.expr) -> Any: ...

    @abstractmethod
    def guard_path(self, cls: ClassValue) -> str: ...

    @abstractmethod
    def init_guard(
        self, instance: Instance, args: list[Any], kwargs: dict[str, Any], node: ast.AST
    ) -> Opaque | None: ...

    @abstractmethod
    def instance_operator(self, name: str, left: Any, right: Any, node: ast.AST) -> Any: ...

    @abstractmethod
    def load_name(self, node: ast.Name) -> Any: ...

    @abstractmethod
    def make_class(self, node: ast.ClassDef, bases: list[Any]) -> ClassValue: ...

    @abstractmethod
    def owner_of(self, node: ast.Attribute) -> Any: ...

    @abstractmethod
    def wrapped_in(self, context: Any, function: Any, site: Any) -> Any: ...

    @abstractmethod
    def wraps_functions(self, value: Any) -> bool: ...

    @abstractmethod
    def wraps_resumes(self, context: Any) -> bool: ...
