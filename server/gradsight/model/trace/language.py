"""What the language did: assignments, containers, names, calls."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.values import (
    Function,
    Instance,
    Mapping,
    Seq,
)


class Assigning(NamedTuple):
    """An assignment is about to be executed."""

    statement: ast.Assign


class Assigned(NamedTuple):
    """An assignment was executed; `newest` is the number of the newest object before it."""

    statement: ast.Assign
    newest: int


class ContainerMade(NamedTuple):
    """A list, tuple, set or dict came to be: by a display, a comprehension, `[x] * n` or `dict.fromkeys`.

    `epochs` are those of the items' memory when each was made, for a comprehension.
    """

    container: Seq | Mapping
    how: str
    node: ast.AST
    epochs: list[int] | None = None


class Stored(NamedTuple):
    """A tensor was put into a list by a method of it."""

    tensor: Tensor
    site: Site
    container: Any = None


class Collected(NamedTuple):
    """A value that is no tensor, a module or a tuple for example, was put into a list by a method of it."""

    value: Any
    container: Seq
    site: Site


class ItemStoring(NamedTuple):
    """`owner[key] = value` is about to be executed."""

    owner: Any
    key: Any
    value: Any


class ItemRead(NamedTuple):
    """`owner[key]` gave a value."""

    owner: Seq | Mapping
    key: Any
    value: Any
    node: ast.AST


class Iterated(NamedTuple):
    """All entries of a sequence are about to be read."""

    sequence: Seq
    node: ast.AST


class PartsSorted(NamedTuple):
    """A loop has come by every named part of a model: `for name, p in model.named_parameters()`."""

    node: ast.AST
    items: list[Any]


class ClassTensorRead(NamedTuple):
    """A tensor that a class holds was read through an instance."""

    tensor: Tensor
    owner: Instance
    name: str
    node: ast.AST


class NameRead(NamedTuple):
    """A name was read that a listener watches in the running frame."""

    name: str
    node: ast.AST


class CallReturned(NamedTuple):
    """A call of a function of the program is over; `started` is the tick and `recorded` the grad mode before it."""

    function: Function
    result: Any
    node: ast.AST
    started: int
    recorded: bool


class GaveUp(NamedTuple):
    """Code that is not known was given these values."""

    reason: str
    values: list[Any]


class MethodReturned(NamedTuple):
    """A method that trains, executed by itself, returned: `optimizers` are those that outlive the call.

    `names` are the attributes that hold them, as far as the object itself does.
    `may_be_cleared_outside` says that a function of the file which calls a method of this name clears gradients.
    """

    name: str
    receiver: Instance
    started: int
    optimizers: list[Optimizer]
    names: dict[Optimizer, str]
    may_be_cleared_outside: bool


class ForwardReturned(NamedTuple):
    """A function that is part of a forward or a loss, executed by itself, returned."""

    result: Any
    tensors: list[Tensor]
    """Those of the result, containers included; also what unknown code returned, where it brings a graph."""
    name: str
