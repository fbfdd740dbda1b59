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
from gradsight.model.tensors import Cut, Tensor, Write
from gradsight.model.values import AbsentGrad, Function, Instance, Layer, Mapping, Opaque, Seq

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
    """`apply` of a custom Function: the backward that will run."""

    backward: Function
    site: Site


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
