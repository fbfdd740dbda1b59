"""What the engine knows about a tensor name at one place, in words for hovers and hints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gradsight.model.card import SeenFrom, TensorCard
from gradsight.model.showing import as_code, as_markdown

MOST_LINES = 5


Naming = Callable[[int], str]
"""How a line of the module is spoken of: `line 7`, or in a notebook `cell 3, line 2`."""


def tensor_card(
    card: TensorCard, line_name: Naming = lambda line: f"line {line}", has_run: bool = False
) -> str:
    """The card in Markdown; `line_name` says where a line is to the reader.  What a run saw tells the shape by itself."""
    shape = f"shape {card.shape}" if card.shape and not has_run else ""
    facts = [shape, _kind(card), _origin(card, line_name)]
    if card.view_of:
        facts.append(f"a view of {as_code(card.view_of)}: they share memory")
    for saved in card.saved[:MOST_LINES]:
        facts.append(f"saved for backward by `{saved.op}` {at(line_name(saved.line))}")
    if len(card.saved) > MOST_LINES:
        facts.append(f"saved for backward by {len(card.saved) - MOST_LINES} more")
    facts.append(_written(card, line_name))
    facts += [_from(caller, line_name) for caller in card.callers]
    if card.doubt and not card.callers:
        facts.append(f"not certain: {as_markdown(card.doubt)}")
    return "\n".join([f"**{as_code(card.name)}**", "", *(f"- {fact}" for fact in facts if fact)])


def at(name: str) -> str:
    """`on line 7`, `in cell 3, line 2`."""
    return f"{'on' if name.startswith('line ') else 'in'} {name}"


def _from(caller: SeenFrom, naming: Naming) -> str:
    mode = "" if caller.records else " (with grad mode off)"
    leaf = "a leaf" if caller.is_leaf else "not a leaf"
    grad = "requires grad" if caller.requires_grad else "does not require grad"
    return f"called from {naming(caller.line)}{mode}: {leaf}, {grad}"


class HintPart(NamedTuple):
    """A few words of an inlay hint, what they mean, and the line that a click leads to; 0 for none."""

    words: str
    meaning: str
    line: int = 0


def hint_label(card: TensorCard) -> str:
    """The few words of an inlay hint: `leaf`, `grad_fn=Exp`, `v1`."""
    return " ".join(part.words for part in hint_parts(card))


def hint_parts(card: TensorCard, seen: str = "", seen_grad_fn: str = "") -> list[HintPart]:
    """What a run saw, and what the text tells: where the tensor was made, and its last write.

    What a run saw comes first: an editor cuts a long hint at its end.  Its `grad_fn` counts for a tensor whose operator
    the text does not tell.
    """
    parts = []
    if seen:
        norm = ", and the norm of its gradient" if "|grad|" in seen else ""
        parts.append(HintPart(seen, f"the shape in the last run{norm}"))
    if card.requires_grad and card.is_leaf:
        parts.append(
            HintPart("leaf", "no operator made it, and `backward()` fills its `.grad`", card.made_line)
        )
    elif card.requires_grad and card.is_leaf is False:
        name = card.grad_fn or seen_grad_fn
        words = f"grad_fn={name}" if name else "grad_fn"
        parts.append(HintPart(words, "the operator that made it", card.made_line))
    elif card.requires_grad is False:
        parts.append(HintPart("no grad", "it does not require grad", card.made_line))
    if card.version:
        times = f"written in place {_times(card.version)}"
        parts.append(HintPart(f"v{card.version}", times, max(card.writes, default=0)))
    return parts


def hint_legend(parts: Sequence[HintPart], line_name: Naming = lambda line: f"line {line}") -> str:
    """What a hint means, in Markdown.  All that is known of the tensor is in the hover of its name."""
    places = [f" ({line_name(part.line)})" if part.line else "" for part in parts]
    return "\n\n".join(
        f"{as_code(part.words)}: {part.meaning}{place}" for part, place in zip(parts, places, strict=True)
    )


def _kind(card: TensorCard) -> str:
    grad = {True: "requires grad", False: "does not require grad", None: ""}[card.requires_grad]
    leaf = {True: "a leaf", False: "not a leaf", None: ""}[card.is_leaf]
    return ", ".join(part for part in (leaf, grad) if part)


def _origin(card: TensorCard, line_name: Naming) -> str:
    place = f" {at(line_name(card.made_line))}" if card.made_line else ""
    if card.grad_of:
        own = f"the gradient of {as_code(card.grad_of)}"
        same = (
            ""
            if card.name == f"{card.grad_of}.grad"
            else f", taken from {as_code(card.grad_of + '.grad')} without a copy"
        )
        return f"{own}{same}" + (f": made by the backward{place}" if place else "")
    if card.made_by:
        recorded = f" (grad_fn {card.grad_fn})" if card.grad_fn else ""
        return f"made by `{card.made_by}`{place}{recorded}"
    return f"made{place}" if place else ""


def _written(card: TensorCard, line_name: Naming) -> str:
    if not card.writes:
        return "never written in place so far" if card.version == 0 else ""
    times = f" {_times(card.version)}" if card.version else ""
    names = [line_name(line) for line in card.writes[:MOST_LINES]]
    if all(name.startswith("line ") for name in names):
        plural = "s" if len(names) > 1 else ""
        names = [f"line{plural} {', '.join(name.removeprefix('line ') for name in names)}"]
    more = ", ..." if len(card.writes) > MOST_LINES else ""
    verb = "added to or written" if card.grad_of else "written in place"
    return f"{verb}{times} ({'; '.join(names)}{more})"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
