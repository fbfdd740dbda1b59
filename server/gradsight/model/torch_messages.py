"""What torch says when it refuses, what it means by that, and how likely a rule is to be behind it.

A message that one rule alone can cause is written in the module of that rule; those with several causes are here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TorchMessage:
    """One of torch's messages, found by a regular expression, and what it means in a sentence or two."""

    pattern: str
    meaning: str
    is_vague: bool = False
    """Its words stand in messages about other things too, so it is tried last."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A message that a rule can be the cause of; of several rules, the one with the lowest rank is the likeliest."""

    message: TorchMessage
    rank: int = 1


def alone(pattern: str, meaning: str) -> Cause:
    """A message that only one rule can cause."""
    return Cause(TorchMessage(pattern, meaning))


MODIFIED_IN_PLACE = TorchMessage(
    r"modified by an inplace operation",
    "Backward needs a value that an operator saved during the forward pass, and something has overwritten it since. "
    "The line in the traceback is the backward; the culprit is the write, which torch does not name.",
)
SECOND_BACKWARD = TorchMessage(
    r"backward through the graph a second time",
    "The values that this backward needs were freed by an earlier one. Either the same loss is used twice, or a tensor "
    "that is carried from one iteration to the next still holds the old graph.",
)
NO_GRAPH = TorchMessage(
    r"does not require grad and does not have a grad_fn",
    "Nothing on the way to this loss is recorded: the path was cut before, by a detach, a copy, a number or a mode.",
)
UNUSED_IN_GRAPH = TorchMessage(
    r"appears? to not have been used in the graph|One of the differentiated Tensors",
    "A gradient was asked for with respect to a tensor that the output does not depend on.",
)
GRADIENT_IS_NONE = TorchMessage(
    r"'NoneType' object has no attribute|NoneType",
    "A `.grad` was used while it was None: no backward has reached this tensor.",
    is_vague=True,
)
