"""What happened to modules and optimizers."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.values import (
    Layer,
)


class Stepping(NamedTuple):
    """An optimizer is about to move its parameters."""

    optimizer: Optimizer
    site: Site


class Stepped(NamedTuple):
    """An optimizer moved its parameters."""

    optimizer: Optimizer
    site: Site


class LayerMade(NamedTuple):
    """A layer of torch was constructed."""

    layer: Layer
    node: ast.AST


class AttributeSet(NamedTuple):
    """An attribute of a module was assigned."""

    owner: Any
    name: str
    value: Any
    old: Any
    node: ast.AST


class AttributeInvented(NamedTuple):
    """An attribute was set that torch gives no meaning to."""

    owner: Any
    name: str
    site: Site


class ChildrenChanging(NamedTuple):
    """A container of modules is about to get children."""

    module: Any


class ChildrenChanged(NamedTuple):
    """A container of modules got children."""

    module: Any
    node: ast.AST


class Copied(NamedTuple):
    """`copy.deepcopy` gave a copy."""

    result: Any
    node: ast.AST


class ModuleWrapped(NamedTuple):
    """A module was put into one that runs it, such as `DistributedDataParallel`; `callee` is the wrapper's name."""

    module: Any
    callee: str
    site: Site


class StandInApplied(NamedTuple):
    """A module that is not known computed with these parameters, which stand for its own."""

    parameters: list[Tensor]


class StateLoading(NamedTuple):
    """`load_state_dict` is about to read what it was given."""

    module: Any


class StateLoaded(NamedTuple):
    """`load_state_dict` wrote the tensors of a module, or put new ones in their places (`assign`)."""

    module: Any
    state: Any
    assign: bool = False
    site: Site | None = None


class ModuleHooked(NamedTuple):
    """A function is to be run at every call of a module, after its forward."""

    hook: Any
    node: ast.AST


class ForwardCalled(NamedTuple):
    """The method `forward` of a module was called by its name."""

    module: Any
    node: ast.AST


class InputShown(NamedTuple):
    """Hooks saw what a module had been given, or may have seen anything in it (None), written or not since `started`."""

    tensors: list[Tensor] | None
    started: int
