"""What happened to tensors: used, combined, written, read."""

from __future__ import annotations

import ast
from collections.abc import Mapping as Given
from dataclasses import dataclass
from typing import Any, ClassVar

from gradsight.model.sites import Site
from gradsight.model.tensors import Region, Tensor, Write


@dataclass(frozen=True, slots=True)
class Used:
    """An operator is about to get these arguments."""

    announced: ClassVar = True
    arguments: Given[str, Any]
    node: ast.AST


@dataclass(frozen=True, slots=True)
class Viewed:
    """A window on a tensor's memory is about to be made."""

    announced: ClassVar = True
    tensor: Tensor
    node: ast.AST


@dataclass(frozen=True, slots=True)
class Applied:
    """A torch function or a layer gave a result."""

    name: str
    first: Any
    arguments: list[Any]
    result: Any
    node: ast.AST


@dataclass(frozen=True, slots=True)
class Combined:
    """Two values were combined by a Python operator: `__add__`, `__rmul__`."""

    operator: str
    left: Tensor
    right: Any
    result: Any
    node: ast.AST


@dataclass(frozen=True, slots=True)
class Augmented:
    """`current op= operand`."""

    statement: ast.AugAssign
    current: Any
    operand: Any
    result: Any


@dataclass(frozen=True, slots=True)
class Wrote:
    """The content of a tensor was changed; its place in the graph is still that of the old value."""

    tensor: Tensor
    op: str
    site: Site
    others: list[Tensor]
    region: Region
    write: Write


@dataclass(frozen=True, slots=True)
class DataAssigned:
    """`tensor.data = value`."""

    tensor: Tensor
    value: Any
    site: Site


@dataclass(frozen=True, slots=True)
class Read:
    """A value was used outside of any operator: printed, indexed, converted, saved."""

    announced: ClassVar = True
    value: Any
    node: ast.AST


@dataclass(frozen=True, slots=True)
class CutByMode:
    """An operator computed while grad mode was off."""

    announced: ClassVar = True
    op: str
    site: Site


@dataclass(frozen=True, slots=True)
class ResultDropped:
    """A statement computed a tensor that nothing keeps."""

    call: ast.Call
    result: Tensor
