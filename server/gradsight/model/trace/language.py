"""What the language did: assignments, containers, names, calls."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, ClassVar

from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.values import (
    Function,
    Instance,
    Mapping,
    Seq,
)


@dataclass(frozen=True, slots=True)
class Assigning:
    """An assignment is about to be executed."""

    announced: ClassVar = True
    statement: ast.Assign


@dataclass(frozen=True, slots=True)
class Assigned:
    """An assignment was executed; `newest` is the number of the newest object before it."""

    statement: ast.Assign
    newest: int


@dataclass(frozen=True, slots=True)
class ContainerMade:
    """A list, tuple, set or dict came to be: by a display, a comprehension, `[x] * n` or `dict.fromkeys`.

    `epochs` are those of the items' memory when each was made, for a comprehension.
    """

    container: Seq | Mapping
    how: str
    node: ast.AST
    epochs: list[int] | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor was put into a list by a method of it."""

    tensor: Tensor
    site: Site


@dataclass(frozen=True, slots=True)
class ItemStoring:
    """`owner[index] = value` is about to be executed."""

    announced: ClassVar = True
    owner: Any
    index: Any
    value: Any


@dataclass(frozen=True, slots=True)
class ItemRead:
    """`owner[index]` gave a value."""

    owner: Seq | Mapping
    index: Any
    value: Any
    node: ast.AST


@dataclass(frozen=True, slots=True)
class Iterated:
    """All entries of a sequence are about to be read."""

    announced: ClassVar = True
    sequence: Seq
    node: ast.AST


@dataclass(frozen=True, slots=True)
class ClassTensorRead:
    """A tensor that a class holds was read through an instance."""

    tensor: Tensor
    owner: Instance
    name: str
    node: ast.AST


@dataclass(frozen=True, slots=True)
class NameRead:
    """A name was read that a listener watches in the running frame."""

    name: str
    node: ast.AST


@dataclass(frozen=True, slots=True)
class CallReturned:
    """A call of a function of the program is over; `started` is the tick and `recorded` the grad mode before it."""

    function: Function
    result: Any
    node: ast.AST
    started: int
    recorded: bool


@dataclass(frozen=True, slots=True)
class GaveUp:
    """Code that is not known was given these values."""

    reason: str
    values: list[Any]


@dataclass(frozen=True, slots=True)
class MethodReturned:
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


@dataclass(frozen=True, slots=True)
class ForwardReturned:
    """A function that is part of a forward or a loss, executed by itself, returned."""

    result: Any
    tensors: list[Tensor]
    """Those of the result, containers included; also what unknown code returned, where it brings a graph."""
    name: str
