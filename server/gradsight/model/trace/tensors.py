"""What happened to tensors: used, combined, written, read."""

from __future__ import annotations

import ast
from collections.abc import Mapping as Given
from typing import Any, NamedTuple

from gradsight.model.sites import Site
from gradsight.model.tensors import Region, Tensor, Write
from gradsight.model.values import Seq


class Used(NamedTuple):
    """An operator is about to get these arguments."""

    arguments: Given[str, Any]
    node: ast.AST


class Viewed(NamedTuple):
    """A window on a tensor's memory is about to be made."""

    tensor: Tensor
    node: ast.AST


class Applied(NamedTuple):
    """A torch function or a layer gave a result; `options` are those of the layer."""

    name: str
    first: Any
    arguments: list[Any]
    result: Any
    node: ast.AST
    options: Given[str, Any] | None = None


class Combined(NamedTuple):
    """Two values were combined by a Python operator: `__add__`, `__rmul__`."""

    operator: str
    left: Tensor
    right: Any
    result: Any
    node: ast.AST


class Augmented(NamedTuple):
    """`current op= operand`."""

    statement: ast.AugAssign
    current: Any
    operand: Any
    result: Any


class Wrote(NamedTuple):
    """The content of a tensor was changed; its place in the graph is still that of the old value."""

    tensor: Tensor
    op: str
    site: Site
    others: list[Tensor]
    region: Region
    write: Write


class RowsWritten(NamedTuple):
    """`tensor[index] = value` was executed, with a tensor or a list of row numbers as the index."""

    tensor: Tensor
    rows: Tensor | Seq
    value: Any
    node: ast.AST


class DataAssigned(NamedTuple):
    """`tensor.data = value`."""

    tensor: Tensor
    value: Any
    site: Site


class Read(NamedTuple):
    """A value was used outside of any operator: printed, indexed, converted, saved."""

    value: Any
    node: ast.AST


class CutByMode(NamedTuple):
    """An operator computed while grad mode was off."""

    op: str
    site: Site


class ResultDropped(NamedTuple):
    """A statement computed a tensor that nothing keeps."""

    call: ast.Call
    result: Tensor
