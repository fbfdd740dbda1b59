"""Which operands `einsum` keeps for backward, and of which it keeps a copy.

torch multiplies two operands as batches of matrices: the labels of an operand are brought into three groups (those of both
operands and the result, those of one operand, those summed over), and each group becomes one dimension.  Labels that do not
lie next to each other in memory can only be merged in a copy, and a label that is summed over in one operand alone is summed
beforehand; what backward keeps then is not the operand.  Where nothing is summed over, the operands themselves are multiplied.
"""

from __future__ import annotations

from functools import lru_cache

ELLIPSIS = "."
KEPT, KEPT_IF_DENSE, COPIED, UNSURE = "kept", "kept if dense", "copied", "unsure"


@lru_cache(maxsize=256)
def operands_kept(equation: str) -> tuple[str, str] | None:
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


def _kept(own: str, other: str, output: str, summed: list[str]) -> str:
    if len({*own}) < len(own):
        return UNSURE
    if {*own} - {*other} - {*output}:
        return COPIED
    if not summed:
        return KEPT
    groups = [
        "".join(label for label in output if label in own and label in other),
        "".join(label for label in output if label in own and label not in other),
        "".join(summed),
    ]
    if any(group not in own for group in groups):
        return COPIED
    return KEPT_IF_DENSE if any(len(group) > 1 for group in groups) else KEPT
