"""Which operands `einsum` keeps for backward, and of which it keeps a copy.

torch multiplies two operands as batches of matrices: the labels of an operand are brought into three groups (those of both
operands and the result, those of one operand, those summed over), and each group becomes one dimension.  Labels that do not
lie next to each other in memory can only be merged in a copy, and a label that is summed over in one operand alone is summed
beforehand; what backward keeps then is not the operand.  Where nothing is summed over, the operands themselves are multiplied.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from gradsight.model.tensors import Shape

ELLIPSIS = "."
KEPT, COPIED, UNSURE = "kept", "copied", "unsure"


class SavedOperand(NamedTuple):
    """What backward keeps of an operand."""

    how: str
    whole: frozenset[int] = frozenset()
    """The dimensions that must be as long as in memory, so that each can be merged with the one before it."""
    dense: bool = False
    """Whether the operand must be contiguous: which dimensions are merged is not told."""


def factors_kept(equation: str, shapes: list[Shape]) -> list[SavedOperand]:
    """What backward keeps of each factor; dimensions of size one are squeezed and merge with any other."""
    plain = len(shapes) == 2 and all(1 not in (shape or ()) for shape in shapes)
    return list((operands_kept(equation) if plain else None) or [SavedOperand(UNSURE)] * len(shapes))


def permutation_of(equation: str) -> list[int] | None:
    """The order of dimensions that an equation of one operand asks for, where that is all it does: torch makes a view.

    `torch.einsum("ij->ji", x)` is `x.permute(1, 0)`.
    """
    labels, arrow, output = equation.replace(" ", "").partition("->")
    output = output if arrow else "".join(sorted(labels))
    if not labels.isalpha() or len({*labels}) < len(labels) or sorted(labels) != sorted(output):
        return None
    return [labels.index(label) for label in output]


@lru_cache(maxsize=256)
def operands_kept(equation: str) -> tuple[SavedOperand, SavedOperand] | None:
    """What backward keeps of each of two operands, or None for an equation that is not of that form."""
    inputs, arrow, output = equation.replace(" ", "").replace("...", ELLIPSIS).partition("->")
    first, comma, second = inputs.partition(",")
    if not comma or "," in second:
        return None
    if not arrow:
        once = sorted(label for label in {*first, *second} - {ELLIPSIS} if inputs.count(label) == 1)
        output = (ELLIPSIS if ELLIPSIS in inputs else "") + "".join(once)
    summed = sorted(({*first} & {*second}) - {*output})
    return (_kept(first, second, output, summed), _kept(second, first, output, summed))


def _kept(own: str, other: str, output: str, summed: list[str]) -> SavedOperand:
    if len({*own}) < len(own):
        return SavedOperand(UNSURE)
    if {*own} - {*other} - {*output}:
        return SavedOperand(COPIED)
    if not summed:
        return SavedOperand(KEPT)
    groups = [
        "".join(label for label in output if label in own and label in other),
        "".join(label for label in output if label in own and label not in other),
        "".join(summed),
    ]
    if any(group not in own for group in groups):
        return SavedOperand(COPIED)
    if ELLIPSIS in own:
        return SavedOperand(KEPT, dense=True)
    merged = {own.index(group) + place for group in groups for place in range(1, len(group))}
    return SavedOperand(KEPT, frozenset(merged))
