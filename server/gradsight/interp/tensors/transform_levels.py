"""What functional transforms follow: values that differ with what `vmap` maps over, or that `grad` differentiates by.

*Level*: a running transform, known by the number of the newest object before it.
"""

from __future__ import annotations

from gradsight.model.tensors import Tensor
from gradsight.model.values import Value, tensors_in


def follow(results: list[Value], operands: list[tuple[str, Tensor]]) -> None:
    """What is computed from a value that a transform follows is followed too."""
    levels = frozenset(level for _, tensor in operands for level in tensor.follows)
    for result in results if levels else ():
        if isinstance(result, Tensor):
            result.follows = result.follows | levels


def followed_by(value: Value, level: int) -> None:
    """A transform begins to follow these tensors."""
    for tensor in tensors_in(value):
        tensor.follows = tensor.follows | {level}
