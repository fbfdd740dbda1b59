"""What happened to gradients: backwards, `.grad`, hooks, and what torch does not notice."""

from __future__ import annotations

import ast
from collections.abc import Mapping as Given
from typing import Any, NamedTuple

from gradsight.model.library_objects import BackgroundThread, GradientScaler, Optimizer
from gradsight.model.sites import Site
from gradsight.model.tensors import Cut, Node, RequiresGrad, Saved, Storage, Tensor, Write
from gradsight.model.values import (
    AbsentGrad,
    ClassValue,
    Seq,
    Stream,
)


class BackwardRun:
    """One backward call: what it reached and which cuts lay in its data."""

    __slots__ = ("cuts", "is_bare", "leaves", "loops", "loss", "open", "site", "tick", "zero_leaves", "zeros")

    def __init__(
        self, site: Site, loss: Tensor, leaves: set[Tensor], cuts: frozenset[Cut], tick: int
    ) -> None:
        self.site = site
        self.loss = loss
        self.leaves = leaves
        self.cuts = cuts
        self.tick = tick
        self.loops = site.loops
        self.zero_leaves: set[Tensor] = set()
        self.zeros = True
        """Whether an operator whose gradient is zero everywhere may stand in its graph."""
        self.open = False
        """The graph has parts that are not known."""
        self.is_bare = False
        """In a loop, and what may have brought its graph was there before: it is that of no module which the loop applies.

        A graph is gone after one backward, so in the next round it would be refused.
        """


class Declared(NamedTuple):
    """A tensor became a leaf that requires grad."""

    tensor: Tensor
    site: Site


class Frozen(NamedTuple):
    """A leaf that required grad was told not to."""

    tensor: Tensor
    site: Site


class Wrapped(NamedTuple):
    """`nn.Parameter(value)` of a value that has a history."""

    value: Tensor
    parameter: Tensor
    cut: Cut
    site: Site


class Backward(NamedTuple):
    """A backward call came through."""

    run: BackwardRun


class AbsentGradUsed(NamedTuple):
    """None was read from `.grad` and is used as a tensor."""

    absent: AbsentGrad
    node: ast.AST


class Identified(NamedTuple):
    """Two values were compared with `is`."""

    left: Any
    right: Any


class GradAssigned(NamedTuple):
    """`tensor.grad = value`, or an augmented assignment to it."""

    tensor: Tensor
    value: Any
    node: ast.AST
    augmented: bool


class Clearing(NamedTuple):
    """Gradients are about to be dropped or zeroed."""

    tensors: list[Tensor]
    site: Site


class Cleared(NamedTuple):
    """Gradients were dropped, or zeroed where they are."""

    tensors: list[Tensor]
    in_place: bool
    site: Site


class Scaled(NamedTuple):
    """A method of a gradient scaler was called."""

    scaler: GradientScaler
    method: str
    arguments: list[Any]
    result: Any


class ScalerStepping(NamedTuple):
    """`scaler.step(optimizer)` is about to let the optimizer step."""

    scaler: GradientScaler
    optimizer: Optimizer
    site: Site


class Hooked(NamedTuple):
    """A hook was registered on a tensor; `returned` is what it makes of a gradient like the tensor, where that shows."""

    tensor: Tensor
    hook: Any
    node: ast.AST
    returned: Any = None


class CustomApplied(NamedTuple):
    """`apply` of a custom Function: what it was given, what its forward returned and kept.

    `epochs` are those of the inputs' memory before; `recorded` tells whether a graph was recorded.  `saved` is what went
    into `save_for_backward`, at `saved_at`; `returned` are the gradients that backward computes, for each argument, as far as
    they can be told without a gradient (None where not); `once` says that it is marked as differentiable once.
    """

    cls: ClassValue
    backward: Any
    arguments: int
    inputs: list[Tensor]
    epochs: Given[Tensor, int]
    dirty: set[Storage]
    kept: Given[str, tuple[Any, Site]]
    result: Any
    requires: RequiresGrad
    recorded: bool
    site: Site
    given: tuple[Any, ...] = ()
    saved: tuple[Tensor, ...] = ()
    saved_at: Site | None = None
    returned: tuple[Any, ...] | None = None
    once: bool = False


class GradRead(NamedTuple):
    """`.grad` of a tensor was asked for; `racing` is a thread that may be running a backward meanwhile."""

    tensor: Tensor
    site: Site
    racing: BackgroundThread | None


class GradRequested(NamedTuple):
    """`autograd.grad` was asked for the gradient of a tensor, and not told that it may be unused."""

    outputs: list[Tensor]
    wanted: Tensor
    site: Site


class SavedChanged(NamedTuple):
    """A backward uses a saved tensor whose content is another under the same version."""

    node: Node
    saved: Saved
    writes: list[Write]
    site: Site
    how: str
    assumption: str


class GraphFound(NamedTuple):
    """A backward was called on a value that has a graph; `is_guess`: a value that nothing is known of, which may have none."""

    site: Site
    is_guess: bool = False


class Walked(NamedTuple):
    """The nodes that a backward executed; `again` is one of an earlier round that an earlier backward went through."""

    nodes: list[Node]
    site: Site
    again: Node | None


class CheckpointedWithoutGrad(NamedTuple):
    """A reentrant checkpoint got no input that requires grad, and its function has parameters that do."""

    site: Site


class IteratorExhausted(NamedTuple):
    """An iterator that gave parameters is gone through once more, and gives nothing."""

    source: Seq | Stream
    node: ast.AST
    refused: bool


class Transformed(NamedTuple):
    """A function was given to a transform that differentiates it by the parameters at these positions (None: all)."""

    function: Any
    wanted: list[int] | None
    name: str
    node: ast.AST


class TransformApplied(NamedTuple):
    """A transformed function gave a value, made at `made`, for these inputs."""

    value: Tensor
    inputs: list[Tensor]
    made: Site
    target: str
    node: ast.AST
