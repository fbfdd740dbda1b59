"""What the engine knows about a tensor under one name at one place."""

from __future__ import annotations

from dataclasses import dataclass

from gradsight.model.source import Span


@dataclass(frozen=True, slots=True, order=True)
class SavedBy:
    """An operator that keeps the tensor for backward, and where."""

    line: int
    op: str


@dataclass(frozen=True, slots=True, order=True)
class SeenFrom:
    """What a name stands for where its function is called from this line; `records` is the grad mode there."""

    line: int
    is_leaf: bool
    requires_grad: bool
    records: bool


@dataclass(frozen=True, slots=True)
class TensorCard:
    """A tensor under one name at one place; None, zero and empty fields are not known.

    `span` is the name itself.  `made_by` is the operator as the program calls it (`exp`, `nn.Linear`), empty for a leaf;
    `grad_fn` is the name that torch gives the recorded operation (`Exp`), where it is always the same; `view_of` is the
    tensor whose memory it shares.  `version` is torch's counter, `writes` the lines that wrote the memory until here,
    `saved` who keeps it for backward, before or after.  `doubt` says why something is not known.
    """

    name: str
    span: Span
    is_leaf: bool | None = None
    requires_grad: bool | None = None
    made_by: str = ""
    grad_fn: str = ""
    made_line: int = 0
    view_of: str = ""
    grad_of: str = ""
    """The tensor whose `.grad` it is; it was made by the backward in `made_line`."""
    shape: str = ""
    """As torch prints it: `[8, 4]`."""
    version: int | None = None
    saved: tuple[SavedBy, ...] = ()
    writes: tuple[int, ...] = ()
    is_assigned: bool = False
    """The name is bound here: the place where a hint belongs."""
    doubt: str = ""
    callers: tuple[SeenFrom, ...] = ()
    """Where calls differ, and each place tells one thing: what it tells."""


@dataclass(frozen=True, slots=True)
class CallCard:
    """A call of an operator, as the engine executed it.

    `span` is the name of the function, or what stands between the operands of a sign.  `cases` are the numbers of the cases
    that calls at this place met in the table's entry `fact`; none where it could not be told.  `numbers` are the arguments that
    were plain numbers.
    """

    span: Span
    fact: str
    cases: tuple[int, ...] = ()
    numbers: tuple[str, ...] = ()
    is_cast: bool = False
    """Whether a call ran under autocast, which gives operators copies of tensors in another dtype."""
    copied: tuple[str, ...] = ()
    """Arguments that a call saved as a copy, or may have: those that do not lie in memory as it needs them."""
    is_recorded: bool = True
    """Whether a call may have been recorded; else grad mode was off, or nothing that it was given requires grad."""


Card = TensorCard | CallCard
