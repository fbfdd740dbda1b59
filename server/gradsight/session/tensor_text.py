"""What the engine knows about a tensor name at one place, in words for hovers and hints."""

from __future__ import annotations

from gradsight.model.card import TensorCard
from gradsight.model.showing import as_code, as_markdown

MOST_LINES = 5


def tensor_card(card: TensorCard) -> str:
    """The card in Markdown."""
    facts = [_kind(card), _origin(card)]
    if card.view_of:
        facts.append(f"a view of {as_code(card.view_of)}: they share memory")
    for saved in card.saved[:MOST_LINES]:
        facts.append(f"kept for backward by `{saved.op}` in line {saved.line}")
    if len(card.saved) > MOST_LINES:
        facts.append(f"kept for backward by {len(card.saved) - MOST_LINES} more")
    facts.append(_written(card))
    if card.doubt:
        facts.append(f"not certain: {as_markdown(card.doubt)}")
    return "\n".join([f"**{as_code(card.name)}**", "", *(f"- {fact}" for fact in facts if fact)])


def hint_label(card: TensorCard) -> str:
    """The few words of an inlay hint: `leaf`, `grad_fn=Exp`, `v1`."""
    words = []
    if card.requires_grad and card.is_leaf:
        words.append("leaf")
    elif card.requires_grad and card.is_leaf is False:
        words.append(f"grad_fn={card.grad_fn}" if card.grad_fn else "grad_fn")
    elif card.requires_grad is False:
        words.append("no grad")
    if card.version:
        words.append(f"v{card.version}")
    return " ".join(words)


def _kind(card: TensorCard) -> str:
    grad = {True: "requires grad", False: "does not require grad", None: ""}[card.requires_grad]
    leaf = {True: "a leaf", False: "not a leaf", None: ""}[card.is_leaf]
    return ", ".join(part for part in (leaf, grad) if part)


def _origin(card: TensorCard) -> str:
    place = f" in line {card.made_line}" if card.made_line else ""
    if card.made_by:
        recorded = f" (grad_fn {card.grad_fn})" if card.grad_fn else ""
        return f"made by `{card.made_by}`{place}{recorded}"
    return f"made{place}" if place else ""


def _written(card: TensorCard) -> str:
    if not card.writes:
        return "never written in place so far" if card.version == 0 else ""
    times = f" {_times(card.version)}" if card.version else ""
    lines = ", ".join(str(line) for line in card.writes[:MOST_LINES])
    more = ", ..." if len(card.writes) > MOST_LINES else ""
    return f"written in place{times} (line{'s' if len(card.writes) > 1 else ''} {lines}{more})"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
