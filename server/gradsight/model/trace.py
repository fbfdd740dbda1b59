"""What happened on a path, as typed facts: the machine emits them, and whoever listens draws conclusions.

A fact is past and without judgement: it says that a tensor was written, not that it should not have been.  Facts hold the
machine's own objects (tensors, values, places), which go on changing: a listener looks at them when it hears of them.

*Announced*: a fact that is told before its effect (`Stepping`); the others are told when it has happened (`Stepped`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from collections.abc import Mapping as Given
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from gradsight.model.sites import Site
from gradsight.model.tensors import Cut, Node, RequiresGrad, Saved, Storage, Tensor, Write
from gradsight.model.values import (
    AbsentGrad,
    ClassValue,
    Function,
    Instance,
    Layer,
    Mapping,
    Opaque,
    Seq,
    Stream,
)

if TYPE_CHECKING:
    from typing import TypeAlias


# -- tensors ---------------------------------------------------------------------------------------------------------


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
    region: Any
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


# -- gradients -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Declared:
    """A tensor became a leaf that requires grad."""

    tensor: Tensor
    site: Site


@dataclass(frozen=True, slots=True)
class Wrapped:
    """`nn.Parameter(value)` of a value that has a history."""

    value: Tensor
    parameter: Tensor
    cut: Cut
    site: Site


@dataclass(frozen=True, slots=True)
class Backward:
    """A backward call came through."""

    run: Any


@dataclass(frozen=True, slots=True)
class AbsentGradUsed:
    """None was read from `.grad` and is used as a tensor."""

    absent: AbsentGrad
    node: ast.AST


@dataclass(frozen=True, slots=True)
class Identified:
    """Two values were compared with `is`."""

    announced: ClassVar = True
    left: Any
    right: Any


@dataclass(frozen=True, slots=True)
class GradAssigned:
    """`tensor.grad = value`, or an augmented assignment to it."""

    tensor: Tensor
    value: Any
    node: ast.AST
    augmented: bool


@dataclass(frozen=True, slots=True)
class Clearing:
    """Gradients are about to be dropped or zeroed."""

    announced: ClassVar = True
    tensors: list[Tensor]
    site: Site


@dataclass(frozen=True, slots=True)
class Cleared:
    """Gradients were dropped, or zeroed where they are."""

    tensors: list[Tensor]
    in_place: bool
    site: Site


@dataclass(frozen=True, slots=True)
class Scaled:
    """A method of a gradient scaler was called."""

    scaler: Opaque
    method: str
    arguments: list[Any]
    result: Any


@dataclass(frozen=True, slots=True)
class Hooked:
    """A hook was registered on a tensor."""

    tensor: Tensor
    hook: Any
    node: ast.AST


@dataclass(frozen=True, slots=True)
class CustomApplied:
    """`apply` of a custom Function: what it was given, what its forward returned and kept.

    `epochs` are those of the inputs' memory before; `recorded` tells whether a graph was recorded.
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


@dataclass(frozen=True, slots=True)
class GradRead:
    """`.grad` of a tensor was asked for; `racing` is a thread that may be running a backward meanwhile."""

    tensor: Tensor
    site: Site
    racing: Opaque | None


@dataclass(frozen=True, slots=True)
class GradRequested:
    """`autograd.grad` was asked for the gradient of a tensor, and not told that it may be unused."""

    outputs: list[Tensor]
    wanted: Tensor
    site: Site


# -- what torch refuses ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteRefused:
    """A write that torch does not perform.

    `reason`: the target is one of `many` views, shows memory that `overlap`s itself, was made in `inference` mode, is a
    view made without grad `mode`, is or shows a `leaf`, or shares memory with its `operands`; `other` is the tensor that
    makes it so.
    """

    tensor: Tensor
    op: str
    site: Site
    reason: str
    other: Tensor
    assumption: str = ""


@dataclass(frozen=True, slots=True)
class OutdatedViewUsed:
    """One of several views is used after its memory was written."""

    view: Tensor
    write: Write
    site: Site


@dataclass(frozen=True, slots=True)
class OutRefused:
    """`out=` while an argument requires grad."""

    op: str
    site: Site
    assumption: str


@dataclass(frozen=True, slots=True)
class InferenceSaved:
    """A tensor made in inference mode would have to be saved for backward."""

    tensor: Tensor
    node: Node


@dataclass(frozen=True, slots=True)
class NumpyRefused:
    """`.numpy()` of a tensor that requires grad."""

    tensor: Tensor
    site: Site


@dataclass(frozen=True, slots=True)
class NonLeafCopied:
    """`copy.deepcopy` of a tensor with a graph."""

    tensor: Tensor
    site: Site


@dataclass(frozen=True, slots=True)
class NonLeafOptimized:
    """An optimizer was given a tensor with a graph."""

    tensor: Tensor
    site: Site


@dataclass(frozen=True, slots=True)
class BeforeInit:
    """A module or a parameter was assigned before `nn.Module.__init__`."""

    name: str
    site: Site


@dataclass(frozen=True, slots=True)
class NoGraph:
    """A backward was called on a value without a graph."""

    loss: Tensor
    site: Site
    cuts: frozenset[Cut]
    how: str


@dataclass(frozen=True, slots=True)
class NotScalar:
    """A backward of a value with more than one element, without a gradient argument."""

    loss: Tensor
    site: Site
    how: str


@dataclass(frozen=True, slots=True)
class SavedOverwritten:
    """A backward needs a saved tensor that has another version now; `writes` are the ones since it was saved."""

    node: Node
    saved: Saved
    writes: list[Write]
    site: Site
    how: str
    assumption: str


@dataclass(frozen=True, slots=True)
class FreedNeeded:
    """A backward needs what an earlier one freed."""

    node: Node
    loss: Tensor
    site: Site
    how: str


# -- what torch does not notice --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SavedChanged:
    """A backward uses a saved tensor whose content is another under the same version."""

    node: Node
    saved: Saved
    writes: list[Write]
    site: Site
    how: str
    assumption: str


@dataclass(frozen=True, slots=True)
class GraphFound:
    """A backward was called on a value that has a graph."""

    site: Site


@dataclass(frozen=True, slots=True)
class Walked:
    """The nodes that a backward executed; `again` is one of an earlier round that an earlier backward went through."""

    nodes: list[Node]
    site: Site
    again: Node | None


@dataclass(frozen=True, slots=True)
class CheckpointedWithoutGrad:
    """A reentrant checkpoint got no input that requires grad, and its function has parameters that do."""

    site: Site


@dataclass(frozen=True, slots=True)
class IteratorExhausted:
    """An iterator that gave parameters is gone through once more, and gives nothing."""

    source: Seq | Stream
    node: ast.AST
    refused: bool


@dataclass(frozen=True, slots=True)
class Transformed:
    """A function was given to a transform that differentiates it by the parameters at these positions (None: all)."""

    function: Any
    wanted: list[int] | None
    name: str
    node: ast.AST


@dataclass(frozen=True, slots=True)
class TransformApplied:
    """A transformed function gave a value, made at `made`, for these inputs."""

    value: Tensor
    inputs: list[Tensor]
    made: Site
    target: str
    node: ast.AST


# -- training --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stepping:
    """An optimizer is about to move its parameters."""

    announced: ClassVar = True
    optimizer: Opaque
    site: Site


@dataclass(frozen=True, slots=True)
class Stepped:
    """An optimizer moved its parameters."""

    optimizer: Opaque
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
class StateLoading:
    """`load_state_dict` is about to read what it was given."""

    announced: ClassVar = True
    module: Any


@dataclass(frozen=True, slots=True)
class StateLoaded:
    """`load_state_dict` wrote the tensors of a module."""

    module: Any
    state: Any


# -- the language ----------------------------------------------------------------------------------------------------


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


Fact: TypeAlias = (
    Used | Viewed | Applied | Combined | Augmented | Wrote | DataAssigned | Read | CutByMode | ResultDropped
    | Declared | Wrapped | Backward | AbsentGradUsed | Identified | GradAssigned | Clearing | Cleared | Scaled | Hooked | CustomApplied
    | GradRead | GradRequested | WriteRefused | OutdatedViewUsed | OutRefused | InferenceSaved | NumpyRefused | NonLeafCopied
    | NonLeafOptimized | BeforeInit | NoGraph | NotScalar | SavedOverwritten | FreedNeeded | SavedChanged | GraphFound | Walked
    | CheckpointedWithoutGrad | IteratorExhausted | Transformed | TransformApplied
    | Stepping | Stepped | LayerMade | AttributeSet | AttributeInvented | ChildrenChanging | ChildrenChanged | Copied
    | StateLoading | StateLoaded | Assigning | Assigned | ContainerMade | Stored | ItemStoring | ItemRead | Iterated
    | ClassTensorRead | NameRead | CallReturned | GaveUp
)  # fmt: skip

Handler = Callable[[Any], None]


class Listener(Protocol):
    """Whoever wants to hear of facts."""

    def hear(self, fact: Fact) -> None:
        """A fact happened."""

    def finish(self) -> None:
        """The path is over."""
