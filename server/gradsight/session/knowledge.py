"""What the engine knows about a tensor name at one place, told for hovers and hints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gradsight.model.source import Span


@dataclass(frozen=True, slots=True)
class Saved:
    """An operator that kept the tensor for backward, and where."""

    op: str
    line: int


@dataclass(frozen=True, slots=True)
class TensorCard:
    """A tensor under one name at one place; None and empty fields are not known.

    `span` is the name itself.  `made_by` is the operator (`Exp`, `Linear`), empty for a leaf; `view_of` the name of the
    tensor whose memory it shares; `writes` the lines that wrote it so far; `doubt` why something is not known.
    """

    name: str
    span: Span
    is_leaf: bool | None = None
    requires_grad: bool | None = None
    made_by: str = ""
    made_line: int = 0
    view_of: str = ""
    version: int | None = None
    saved: tuple[Saved, ...] = ()
    writes: tuple[int, ...] = ()
    is_assigned: bool = False
    """The name is bound here: the place where a hint belongs."""
    doubt: str = ""


class Knowledge(Protocol):
    """Cards in reading order."""

    def cards(self, first_line: int, last_line: int) -> Sequence[TensorCard]: ...


def tensor_card(card: TensorCard) -> str:
    """The card in Markdown."""
    facts = [_kind(card)]
    if card.made_by:
        facts.append(f"made by `{card.made_by}`" + (f" in line {card.made_line}" if card.made_line else ""))
    if card.view_of:
        facts.append(f"a view of `{card.view_of}`: they share memory")
    for saved in card.saved:
        facts.append(f"kept for backward by `{saved.op}` in line {saved.line}")
    if card.writes:
        facts.append(f"written in place {_times(len(card.writes))} (line {_lines(card.writes)})")
    elif card.version == 0:
        facts.append("never written in place")
    if card.doubt:
        facts.append(f"not known: {card.doubt}")
    return "\n".join([f"**`{card.name}`**", "", *(f"- {fact}" for fact in facts if fact)])


def hint_label(card: TensorCard) -> str:
    """The few words of an inlay hint: `leaf`, `grad_fn=Exp`, `v1`."""
    words = []
    if card.requires_grad and card.is_leaf:
        words.append("leaf")
    elif card.requires_grad and card.made_by:
        words.append(f"grad_fn={card.made_by}")
    elif card.requires_grad is False:
        words.append("no grad")
    if card.version:
        words.append(f"v{card.version}")
    return " ".join(words)


def _kind(card: TensorCard) -> str:
    grad = {True: "requires grad", False: "does not require grad", None: ""}[card.requires_grad]
    leaf = {True: "a leaf", False: "not a leaf", None: ""}[card.is_leaf]
    return ", ".join(part for part in (leaf, grad) if part)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _lines(lines: Sequence[int]) -> str:
    return ", ".join(str(line) for line in lines[:5]) + (", ..." if len(lines) > 5 else "")
