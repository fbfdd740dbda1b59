"""Tensors as autograd sees them: storages, version counters, graph nodes and what they saved.

Words
-----
*Storage*: the memory; `epoch` counts every change of its content, noticed by autograd or not.
*Counter*: torch's version counter.  A view and `detach()` share the counter of their source; `.data` gets its own.
*Node*: one `grad_fn`.  *Saved*: a tensor that a node keeps, with the version and the epoch it had then.
*Edge*: where a gradient goes next, a node or a leaf tensor.
*Cut*: a place where data flows on and the graph does not.
*Maybe*: `requires_grad` that rests on an assumption; a weak one is plain ignorance and never leads to a finding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gradsight.model.sites import Numbering, Site


class Numbered:
    """Objects with a number of their own on their path, so that sets of them are walked in the same order every time."""

    __slots__ = ("serial",)
    serial: int

    def __hash__(self) -> int:
        return self.serial


class Maybe:
    """`requires_grad` is true if the stated assumption holds."""

    __slots__ = ("reason", "weak")

    def __init__(self, reason: str, weak: bool = False) -> None:
        self.reason = reason
        self.weak = weak

    def __repr__(self) -> str:
        return f"Maybe({self.reason!r}{', weak' if self.weak else ''})"


PART_OF = "<array>"
"""The attribute of a tensor that holds the NumPy array in whose memory it lies."""
INTEGRAL = ("int", "bool")
"""Kinds of numbers that no gradient flows through."""
IGNORANT = Maybe("a value that is not known here", weak=True)
RequiresGrad = bool | Maybe
Shape = tuple[int | None, ...] | None
"""Sizes, None for an unknown one; None when nothing is known."""


class MemoryOrder(NamedTuple):
    """Which dimension of dense memory each dimension of a view walks along, and which of these are not shown whole.

    More dimensions may follow in an open one, as they do in memory.
    """

    order: tuple[int, ...]
    narrowed: frozenset[int] = frozenset()
    is_open: bool = False


class Interval(NamedTuple):
    """A part of one dimension; `from_end` means the one place that many before its end."""

    start: int
    stop: int | None
    from_end: bool = False


class Indexed(NamedTuple):
    """What a basic index shows: an interval per dimension, None for all of it."""

    intervals: tuple[Interval | None, ...]


class PartOf(NamedTuple):
    """One of several views that were made at once."""

    number: int


Region = Indexed | PartOf | None
"""Which part of a memory a view shows; None where that is not known, or all of it."""


def any_requires_grad(flags: list[RequiresGrad]) -> RequiresGrad:
    """True if one is; else the strongest assumption among them; else False."""
    found: RequiresGrad = False
    for flag in flags:
        if flag is True:
            return True
        if flag is not False and (found is False or (isinstance(found, Maybe) and found.weak)):
            found = flag
    return found


class Storage(Numbered):
    """Memory shared by a tensor and its aliases, with the log of writes to it."""

    __slots__ = ("content", "device", "epoch", "stores", "writes", "zero")

    def __init__(self, numbering: Numbering) -> None:
        numbering.last = self.serial = numbering.last + 1
        self.epoch = 0
        self.content: tuple[int, int] = (self.serial, 0)
        """Equal for two memories of one size that are known to hold the same numbers."""
        self.device = ""
        """`cuda` where it is known to be there, `?` where the program chose a device that is not known; else empty."""
        self.zero = False
        """Whether every element is known to be zero."""
        self.stores: list[tuple[int, int, Site]] | None = None
        """Where a tensor on this memory was put into a container: container, epoch then, place."""
        self.writes: list[Write] = []

    def settle(self, op: str, sources: list[Storage]) -> None:
        """What a result is by what it was computed from: where it lies, and whether it is zero."""
        self.device = next((one.device for one in sources if one.device), "")
        self.zero = op == "mul" and any(one.zero for one in sources)


class Counter:
    """A version counter.  `kept` is the first version of which backward keeps something, for sure or perhaps."""

    __slots__ = ("kept", "version")

    def __init__(self) -> None:
        self.version = 0
        self.kept: int | None = None


class Write:
    """One change of a storage.

    `mode` is `graph` (recorded by autograd), `no_grad`, `silent` (no version bump: `.data`, NumPy, fused optimizers),
    `optimizer` (a step) or `accumulate` (backward adding into an existing `.grad`).
    `change` is what is known of the new content: `none` (the old one), `scaled` by a positive number, `shifted` by numbers
    that nothing learns through, `sunk` (elements filled with a number that is, or may be, very far from the others), or empty.
    """

    __slots__ = ("change", "counter", "epoch", "mode", "op", "region", "site", "tick", "version", "writer")

    def __init__(
        self,
        site: Site,
        op: str,
        writer: Tensor,
        mode: str,
        counter: Counter,
        region: Region = None,
        change: str = "",
    ) -> None:
        self.site = site
        self.op = op
        self.writer = writer
        self.mode = mode
        self.counter = counter
        self.version = counter.version
        self.epoch = writer.storage.epoch
        self.region = region
        self.change = change
        self.tick = 0


class Cut(Numbered):
    """Data went on here and the graph did not.  `source` is the tensor whose history was left behind.

    `computed_at` is where an operator was applied while the mode that a cut stands at was off.
    """

    __slots__ = ("computed_at", "edges", "kind", "op", "site", "source", "tick")

    def __init__(
        self, kind: str, op: str, site: Site, source: Tensor, tick: int, computed_at: Site | None = None
    ) -> None:
        self.computed_at = computed_at or site
        numbering = site.frame.numbering
        numbering.last = self.serial = numbering.last + 1
        self.kind = kind
        self.op = op
        self.site = site
        self.source = source
        self.tick = tick
        edge = source.edge()
        self.edges: tuple[Edge, ...] = (edge,) if edge is not None else ()


NO_CUTS: frozenset[Cut] = frozenset()
NO_LEVELS: frozenset[int] = frozenset()


class Saved:
    """A tensor kept for backward, as it was then.

    `certain` is false where the facts say `sometimes`, `noticed` where torch does not compare versions.
    """

    __slots__ = (
        "certain", "content", "counter", "epoch", "label", "noticed", "region", "role", "storage", "tensor", "version",
    )  # fmt: skip

    def __init__(self, tensor: Tensor, role: str, certain: bool, noticed: bool = True) -> None:
        self.tensor = tensor
        self.role = role
        self.certain = certain
        self.noticed = noticed
        self.counter = tensor.counter
        self.storage = tensor.storage
        self.version = tensor.counter.version
        self.epoch = tensor.storage.epoch
        self.content = tensor.storage.content
        self.region = tensor.region
        self.label = tensor.label
        if self.counter.kept is None:
            self.counter.kept = self.version


class Node(Numbered):
    """One recorded operation.

    `holds` tells whether a second backward through it is refused: `always`, `sometimes`, `never`, or `layers` for a call of
    an unknown module, which keeps something for backward unless what it returns was cut off inside.
    """

    __slots__ = (
        "customs",
        "freed",
        "holds",
        "inputs",
        "is_unseen",
        "op",
        "open",
        "operands",
        "overwritten",
        "premise",
        "reentrant",
        "requires",
        "saved",
        "site",
        "tick",
        "unproved",
        "walked",
        "zero",
    )

    def __init__(self, op: str, site: Site, inputs: list[Edge], requires: RequiresGrad, tick: int) -> None:
        numbering = site.frame.numbering
        numbering.last = self.serial = numbering.last + 1
        self.op = op
        self.site = site
        self.inputs = inputs
        self.requires = requires
        self.saved: list[Saved] = []
        self.holds = "never"
        self.freed: Site | None = None
        self.zero = False
        self.tick = tick
        self.operands: list[Tensor] = []
        self.walked: Site | None = None
        self.unproved: list[Any] = []
        """Unknown operands whose graph would be that of modules which the code that made them was given."""
        self.overwritten: Edge | None = None
        """The history of a value that this write replaced: backward still visits it, with a zero gradient."""
        self.open = False
        """An operand is unknown and may bring a graph of its own."""
        self.is_unseen = False
        """An operand is unknown that was not there before the function began which is executed by itself."""
        self.premise = ""
        """What must hold for the gradient to go on from here to the inputs."""
        self.reentrant = False
        """A checkpoint that runs a backward of its own inside the backward."""
        self.customs: tuple[Any, ...] = ()
        """The application of a custom Function that this is; for a gradient with a graph of its own, those it came through."""


class Tensor(Numbered):
    """A tensor object: a window on a storage, with its place in the graph."""

    __slots__ = (
        "attributes",
        "base",
        "batch_merges",
        "born_epoch",
        "born_version",
        "counter",
        "cuts",
        "dense",
        "dtype",
        "follows",
        "frozen_at",
        "grad",
        "grad_of",
        "inference_site",
        "is_parameter",
        "kept_at",
        "label",
        "layout",
        "leaf_made",
        "node",
        "one_of_many",
        "overlapping",
        "rebases",
        "region",
        "requires_grad",
        "retains_grad",
        "rows_dense",
        "seen_rebases",
        "shape",
        "site",
        "snapshot",
        "source",
        "storage",
        "thread",
        "twist",
        "view_made_without_grad",
    )

    def __init__(
        self,
        site: Site,
        storage: Storage | None = None,
        counter: Counter | None = None,
        node: Node | None = None,
        requires_grad: RequiresGrad = False,
        dtype: str = "float",
        shape: Shape = None,
    ) -> None:
        numbering = site.frame.numbering
        numbering.last = self.serial = numbering.last + 1
        self.site = site
        self.storage = storage if storage is not None else Storage(numbering)
        self.counter = counter if counter is not None else Counter()
        self.node = node
        self.requires_grad = requires_grad
        self.dtype = dtype
        self.shape = shape
        self.label = ""
        self.dense = True
        self.rows_dense = True
        """Whether what lies along the last dimension is one run of memory, however the other dimensions are ordered."""
        self.batch_merges = True
        """Whether all dimensions but the last two can be taken for one without a copy."""
        self.layout: MemoryOrder | None = None
        """How the dimensions of a view that is not dense lie in memory, if that is known."""
        self.twist = ""
        """Operators that reordered the dimensions of this view against its memory."""
        self.view_made_without_grad = False
        self.base: Tensor | None = None
        self.rebases = 0
        self.seen_rebases = 0
        self.region: Region = None
        self.one_of_many = ""
        self.overlapping = ""
        self.cuts: frozenset[Cut] = NO_CUTS
        self.grad: Any = None
        self.grad_of: Tensor | None = None
        self.retains_grad = False
        self.is_parameter = False
        self.inference_site: Site | None = None
        self.kept_at: Site | None = None
        """Where it was last put into an attribute or a container."""
        self.snapshot = ""
        self.source: Tensor | None = None
        self.born_epoch = self.storage.epoch
        self.born_version = self.counter.version
        self.leaf_made = False
        self.frozen_at: Site | None = None
        self.thread: Any = None
        self.follows: frozenset[int] = NO_LEVELS
        """The functional transforms that follow it: its value differs with what they map over, or differentiate by."""
        self.attributes: dict[str, Any] | None = None

    def refresh(self) -> None:
        """After a write to its base, a view's history is that of the base's new value."""
        base = self.base
        if base is not None and base.rebases != self.seen_rebases:
            self.seen_rebases = base.rebases
            self.requires_grad = base.requires_grad
            if base.node is not None:
                node = Node("AsStrided", base.node.site, [base.node], base.requires_grad, base.node.tick)
                self.node = node

    def edge(self) -> Edge | None:
        """Where a gradient that arrives at this tensor goes."""
        if self.base is not None:
            self.refresh()
        if self.node is not None:
            return self.node
        return self if self.requires_grad is not False else None

    @property
    def is_leaf(self) -> bool:
        """As torch tells it: no grad_fn."""
        if self.base is not None:
            self.refresh()
        return self.node is None

    def needs_grad(self) -> RequiresGrad:
        """`requires_grad` as of now, views brought up to date."""
        if self.base is not None:
            self.refresh()
        return self.requires_grad

    def root(self) -> Tensor:
        """The tensor whose memory this view shows."""
        return self.base if self.base is not None else self


Edge = Node | Tensor


def leaves_of(edges: tuple[Edge, ...] | list[Edge], through_zero: bool = True) -> set[Tensor]:
    """The leaf tensors that a gradient arriving at these edges would reach."""
    found: set[Tensor] = set()
    seen: set[Node] = set()
    todo: list[Edge] = list(edges)
    while todo:
        edge = todo.pop()
        if isinstance(edge, Tensor):
            found.add(edge)
        elif edge not in seen and (through_zero or not edge.zero):
            seen.add(edge)
            todo.extend(edge.inputs)
    return found


def nodes_and_leaves(edges: tuple[Edge, ...]) -> set[Edge]:
    """Everything that a backward from these edges visits."""
    seen: set[Edge] = set()
    todo = list(edges)
    while todo:
        edge = todo.pop()
        if edge not in seen:
            seen.add(edge)
            if isinstance(edge, Node):
                todo.extend(edge.inputs)
    return seen


def is_mask(tensor: Tensor) -> bool:
    """Made of zeros and ones: a truth value, one that was converted, or ones and zeros set item by item."""
    if tensor.dtype == "bool" or (tensor.attributes or {}).get("<mask>"):
        return True
    return tensor.leaf_made and any(write.op == "index_put_" for write in tensor.storage.writes)


def views_made_by(view: Tensor) -> str:
    """How a view came about that autograd does not let anybody write."""
    if view.one_of_many.startswith("register_"):
        return f"`{view.one_of_many}` hands it on as a view here"
    maker = "iterating over it" if view.one_of_many.startswith("unbind (") else f"`{view.one_of_many}`"
    return f"{maker} gives several views of one tensor here"
