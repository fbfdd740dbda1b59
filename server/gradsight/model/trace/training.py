"""What happened to modules and optimizers."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, ClassVar

from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.values import (
    Layer,
)


@dataclass(frozen=True, slots=True)
class Stepping:
    """An optimizer is about to move its parameters."""

    announced: ClassVar = True
    optimizer: Optimizer
    site: Site


@dataclass(frozen=True, slots=True)
class Stepped:
    """An optimizer moved its parameters."""

    optimizer: Optimizer
    site: Site


@dataclass(frozen=True, slots=True)
class LayerMade:
    """A layer of torch was constructed."""

    layer: Layer
    node: ast.AST


@dataclass(frozen=True, slots=True)
class AttributeSet:
    """An attribute of a module was assigned."""

    owner: Any
    name: str
    value: Any
    old: Any
    node: ast.AST


@dataclass(frozen=True, slots=True)
class AttributeInvented:
    """An attribute was set that torch gives no meaning to."""

    owner: Any
    name: str
    site: Site


@dataclass(frozen=True, slots=True)
class ChildrenChanging:
    """A container of modules is about to get children."""

    announced: ClassVar = True
    module: Any


@dataclass(frozen=True, slots=True)
class ChildrenChanged:
    """A container of modules got children."""

    module: Any
    node: ast.AST


@dataclass(frozen=True, slots=True)
class Copied:
    """`copy.deepcopy` gave a copy."""

    result: Any
    node: ast.AST


@dataclass(frozen=True, slots=True)
class ModuleWrapped:
    """A module was put into one that runs it, such as `DistributedDataParallel`; `callee` is the wrapper's name."""

    module: Any
    callee: str
    site: Site


@dataclass(frozen=True, slots=True)
class StateLoading:
    """`load_state_dict` is about to read what it was given."""

    announced: ClassVar = True
    module: Any


@dataclass(frozen=True, slots=True)
class StateLoaded:
    """`load_state_dict` wrote the tensors of a module."""

    module: Any
    state: Any


@dataclass(frozen=True, slots=True)
class ForwardCalled:
    """The method `forward` of a module was called by its name."""

    announced: ClassVar = True
    module: Any
    node: ast.AST


@dataclass(frozen=True, slots=True)
class InputShown:
    """Hooks saw what a module had been given, or may have seen anything in it (None), written or not since `started`."""

    tensors: list[Tensor] | None
    started: int
