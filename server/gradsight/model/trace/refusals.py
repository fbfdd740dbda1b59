"""What torch refuses, and what a backward meets that it cannot use."""

from __future__ import annotations

from typing import NamedTuple

from gradsight.model.sites import Site
from gradsight.model.tensors import Cut, Node, Saved, Tensor, Write


class WriteRefused(NamedTuple):
    """A write that torch does not perform.

    `reason`: the target is one of `many` views, shows memory that `overlap`s itself, was made in `inference` mode, is a
    view made without grad `mode`, is or shows a `leaf`, or shares memory with its `operands`; it is a view that was to be
    taken out of the graph (`detach`), a tensor of the graph that was to `resize`, or a tensor that a transform does not
    follow (`transform`).  `other` is the tensor that makes it so.
    """

    tensor: Tensor
    op: str
    site: Site
    reason: str
    other: Tensor
    assumption: str = ""
    transform: str = ""


class OutdatedViewUsed(NamedTuple):
    """One of several views is used after its memory was written."""

    view: Tensor
    write: Write
    site: Site


class OutRefused(NamedTuple):
    """`out=` while an argument requires grad."""

    op: str
    site: Site
    assumption: str


class InferenceSaved(NamedTuple):
    """A tensor made in inference mode would have to be saved for backward."""

    tensor: Tensor
    node: Node


class NumpyRefused(NamedTuple):
    """`.numpy()` of a tensor that requires grad."""

    tensor: Tensor
    site: Site


class NonLeafCopied(NamedTuple):
    """`copy.deepcopy` of a tensor with a graph."""

    tensor: Tensor
    site: Site


class NonLeafOptimized(NamedTuple):
    """An optimizer was given a tensor with a graph."""

    tensor: Tensor
    site: Site


class OptimizerRefused(NamedTuple):
    """An optimizer that torch does not make: `reason` is `empty` without parameters, `twice` for a tensor in two groups."""

    site: Site
    reason: str
    tensor: Tensor | None = None


class FunctionRefused(NamedTuple):
    """A custom Function that torch does not run: `reason` is `instance` for a call of an object, `missing` without a backward,
    `number` where something is saved that is no tensor, `dirty` where what was marked as written is not returned."""

    name: str
    site: Site
    reason: str
    applied: Site


class CheckpointRefused(NamedTuple):
    """A reentrant checkpoint lies on the way of a backward that is asked for some inputs only."""

    checkpoint: Site
    site: Site
    how: str


class BeforeInit(NamedTuple):
    """A module or a parameter was assigned before `nn.Module.__init__`."""

    name: str
    site: Site


class ParameterRefused(NamedTuple):
    """A plain tensor was assigned to the name of a parameter."""

    name: str
    value: Tensor
    site: Site


class NoGraph(NamedTuple):
    """A backward was called on a value without a graph."""

    loss: Tensor
    site: Site
    cuts: frozenset[Cut]
    how: str


class NotScalar(NamedTuple):
    """A backward of a value with more than one element, without the argument that would take its gradient."""

    loss: Tensor
    site: Site
    how: str
    argument: str = ""
    assumption: str = ""


class SavedOverwritten(NamedTuple):
    """A backward needs a saved tensor that has another version now; `writes` are the ones since it was saved."""

    node: Node
    saved: Saved
    writes: list[Write]
    site: Site
    how: str
    assumption: str


class FreedNeeded(NamedTuple):
    """A backward needs what an earlier one freed."""

    node: Node
    loss: Tensor
    site: Site
    how: str
    assumption: str = ""


class FlagRefused(NamedTuple):
    """`requires_grad`, `retain_grad` or a hook is asked of a tensor that cannot have it.

    `reason`: the tensor holds whole numbers (`integer`), is a `result` whose flag was to be switched off, was made in
    `inference` mode, needs no grad and was asked to retain one (`retain`) or got a `hook`, or is no leaf and was to tell of
    what it has `accumulated`.
    """

    tensor: Tensor
    site: Site
    reason: str
    how: str


class GradientRefused(NamedTuple):
    """A gradient was given that does not fit its tensor.

    `reason`: another `shape`, another `count`, `none` for a tensor of several elements, another `dtype`, a `number` instead of
    a tensor, an empty list of `inputs`.
    """

    tensor: Tensor
    given: str
    wanted: str
    site: Site
    reason: str
    how: str
