"""What the language stands on, and what must be there above."""

from __future__ import annotations

import ast
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from gradsight.interp.path_state import PathState
from gradsight.interp.python.loops import Loops
from gradsight.model.library_objects import GradMode
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.values import (
    AbsentGrad,
    ClassValue,
    External,
    Function,
    Instance,
    Layer,
    Leave,
    Mapping,
    Module,
    Names,
    Opaque,
    Partial,
    Pending,
    PythonModule,
    Seq,
    Unknown,
    Value,
    Wrapper,
)


class ObjectsAboveLanguage(Protocol):
    """What the language needs of objects."""

    def builtin_dict(self, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value: ...

    def call_method(
        self, receiver: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def delete_attribute(self, owner: Value, name: str, node: ast.AST) -> None: ...

    def delete_items(self, owner: Seq, index: Value) -> None: ...

    def delete_key(self, mapping: Mapping, key: Value) -> None: ...

    def is_instance(self, value: Value, kind: Value) -> bool | None: ...

    def get_attribute(self, owner: Value, name: str, node: ast.AST) -> Value: ...

    def get_item(self, owner: Value, index: Value, node: ast.AST) -> Value: ...

    def iterate(self, value: Value, at_least: int = 0) -> tuple[Iterator[Value], int | None]: ...

    def mapping_key(self, key: Value) -> Hashable: ...

    def mapping_method(
        self, receiver: Mapping, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def overload_for(self, function: Function, args: list[Value]) -> Value: ...

    def sequence_method(
        self, receiver: Seq, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def set_attribute(
        self, owner: Value, name: str, value: Value, node: ast.AST, augmented: bool = False
    ) -> None: ...

    def set_item(self, owner: Value, index: Value, value: Value, node: ast.AST) -> None: ...

    def store_key(self, mapping: Mapping, key: Value, value: Value) -> None: ...

    def stored(self, tensor: Tensor, container: Value, node: ast.AST) -> None: ...


class AutogradAboveLanguage(Protocol):
    """What the language needs of autograd."""

    def absent_grad_used(self, absent: AbsentGrad, node: ast.AST) -> None: ...

    def augment(self, node: ast.AugAssign, current: Value, operand: Value) -> Value: ...

    def augment_item(self, node: ast.AugAssign, owner: Tensor, index: Value, operand: Value) -> None: ...

    def call_partial(
        self, made: Partial, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def tensor_operator(self, name: str, tensor: Tensor, other: Value, node: ast.AST) -> Value: ...

    def unknown_arithmetic(self, name: str, left: Value, right: Value, node: ast.AST) -> Value: ...

    def unknown_sign(self, name: str, value: Unknown, node: ast.AST) -> Value: ...


class ModulesAboveLanguage(Protocol):
    """What the language needs of modules and optimizers."""

    def own_optimizer(
        self, cls: ClassValue, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def call_layer(
        self, layer: Layer, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def call_mode(self, path: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value: ...

    def call_module(
        self, instance: Instance, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def call_opaque(
        self, value: Opaque, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def enter_modes(self, modes: tuple[Wrapper, ...]) -> Callable[[], None]: ...

    def enter_opaque(self, context: Opaque, node: ast.AST) -> tuple[Value, Leave | None]: ...

    def init_module(
        self, instance: Instance, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> None: ...

    def is_mode_path(self, path: str) -> bool: ...

    def is_module_by_text(self, node: ast.AST, bases: list[Value]) -> bool: ...

    def kind_of_base(self, path: str) -> str: ...

    def mode_of(self, value: Value) -> GradMode | None: ...

    def undo_mode_call(self, mode: GradMode) -> None: ...

    def unknown_result(
        self, reason: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST | None = None
    ) -> Value: ...

    def modules_in(self, module: Module) -> list[tuple[str, Module]]: ...

    def tensors_of(self, module: Module, kind: str) -> list[tuple[str, Tensor]]: ...


class LibrariesAboveLanguage(Protocol):
    """What the language needs of libraries."""

    def call_plain_object(
        self, instance: Instance, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def call_external(
        self, path: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def call_unknown(
        self, function: Unknown, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def deep_copy(self, value: Value, node: ast.AST, memo: dict[int, Value]) -> Value: ...

    def copy_optimizers(self, names: dict[str, Value], node: ast.AST, memo: dict[int, Value]) -> None: ...

    def external_attribute(self, owner: External, name: str) -> Value: ...

    def global_name(self, name: str, node: ast.AST) -> Value: ...

    def resolve_import(self, pending: Pending, node: ast.AST) -> Value: ...

    def star_import(self, name: str) -> None: ...

    def is_distribution_path(self, path: str) -> bool: ...

    def make_distribution(
        self, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...


class EntryAboveLanguage(Protocol):
    """What the language needs of entries."""

    making: Literal["", "whole", "part"]
    parts_made: dict[tuple[ast.AST, ClassValue, int], list[Value]]
    whole_parts: dict[tuple[Value, ...], Value]

    def purse(self, amount: int) -> AbstractContextManager[None]: ...

    def filled_in_elsewhere(
        self, owner: Instance, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value: ...

    def meet_scalers(self, args: list[Value], node: ast.AST) -> None: ...

    def bind_waiting(self, names: Names, name: str) -> Value: ...

    def find_module(self, name: str, level: int) -> PythonModule | None: ...

    def module_of_workspace(self, name: str) -> PythonModule | None: ...
    def class_shown_above(self, module: str, name: str) -> ClassValue | None: ...

    def is_spoken_of_as_tensor(self, name: str) -> bool: ...

    def load_module(self, module: PythonModule) -> PythonModule: ...

    def private_part(self, key: tuple[int, str], names: dict[str, Value], value: Value) -> Value: ...

    def read_shared(self, names: dict[str, Value], name: str) -> Value: ...

    def write_shared(self, names: dict[str, Value], name: str, value: Value) -> None: ...

    def missing_argument(self, function: Function, parameter: ast.arg) -> Value: ...

    def tensor_of(self, value: Unknown) -> Tensor: ...

    def graphs_in(self, args: list[Value], kwargs: dict[str, Value]) -> list[Tensor]: ...

    def open_to_parts(self, result: Value, args: list[Value], kwargs: dict[str, Value]) -> None: ...

    def give_graph(
        self, result: Unknown, tensors: list[Tensor], name: str, node: ast.AST, premise: str
    ) -> None: ...


class LanguageFloor(metaclass=ABCMeta):
    """The lowest class of the floor: holds the path, and the other floors once they are joined."""

    loops: Loops
    objects: ObjectsAboveLanguage
    autograd: AutogradAboveLanguage
    nn: ModulesAboveLanguage
    libraries: LibrariesAboveLanguage
    entry: EntryAboveLanguage

    def __init__(self, path: PathState) -> None:
        self.path = path

    # What a class needs of one that stands above it on the same floor.

    @abstractmethod
    def any_of(self, conditions: list[Value]) -> Value: ...

    @abstractmethod
    def call(self, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST) -> Value: ...

    @abstractmethod
    def compare_values(self, op: str, left: Value, right: Value, node: ast.AST) -> Value: ...

    @abstractmethod
    def decorate(self, decorator: ast.expr, function: Value) -> Value: ...

    @abstractmethod
    def decorate_class(self, decorator: ast.expr, value: Value) -> Value: ...

    @abstractmethod
    def do_import(self, node: ast.Import) -> Value: ...

    @abstractmethod
    def do_import_from(self, node: ast.ImportFrom) -> Value: ...

    @abstractmethod
    def enter_context(self, context: Value, node: ast.AST) -> tuple[Value, Leave | None]: ...

    @abstractmethod
    def enter_wrappers(self, wrappers: tuple[Wrapper, ...]) -> Callable[[], None]: ...

    @abstractmethod
    def evaluate(self, node: ast.AST) -> Value: ...

    @abstractmethod
    def evaluate_call(self, node: ast.Call) -> Value: ...

    @abstractmethod
    def evaluate_index(self, node: ast.expr) -> Value: ...

    @abstractmethod
    def guard_path(self, cls: ClassValue) -> str: ...

    @abstractmethod
    def init_guard(
        self, instance: Instance, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Opaque | None: ...

    @abstractmethod
    def instance_operator(self, name: str, left: Value, right: Value, node: ast.AST) -> Value: ...

    @abstractmethod
    def load_name(self, node: ast.Name) -> Value: ...

    @abstractmethod
    def make_class(self, node: ast.ClassDef, bases: list[Value]) -> ClassValue: ...

    @abstractmethod
    def owner_of(self, node: ast.Attribute) -> Value: ...

    @abstractmethod
    def wrapped_in(self, context: Value, function: Value, site: Site) -> Value: ...

    @abstractmethod
    def wraps_functions(self, value: Value) -> bool: ...

    @abstractmethod
    def wraps_resumes(self, context: Value) -> bool: ...
