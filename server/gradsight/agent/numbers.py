"""Functions of `math` under the probe: a number that was computed from a tensor keeps its origin through them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from gradsight.agent.origins import Origins, TracedFloat

_FUNCTIONS = (
    "exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "pow", "sin", "cos", "tan", "asin", "acos", "atan", "atan2",
    "sinh", "cosh", "tanh", "fabs", "hypot", "erf", "fsum",
)  # fmt: skip


def follow_math(origins: Origins) -> None:
    """Takes the place of the functions of `math`, which see a tensor as a number without saying so."""
    for name in _FUNCTIONS:
        setattr(math, name, _traced(getattr(math, name), origins))


def _traced(plain: Callable[..., Any], origins: Origins) -> Callable[..., Any]:
    @functools.wraps(plain)
    def traced(*args: Any) -> Any:
        result = plain(*args)
        leaves = events = 0
        for value in args:
            if isinstance(value, torch.Tensor):
                # The call has read the tensor as a number, which the surface has written down by its value.
                more_leaves, more_events = origins.of(float(value))
            elif type(value) is TracedFloat or isinstance(value, (list, tuple)):
                more_leaves, more_events = origins.of(value)
            else:
                continue
            leaves |= more_leaves
            events |= more_events
        return origins.traced(result, (leaves, events)) if leaves else result

    return traced


MATH_CODE = _traced(math.exp, Origins()).__code__
"""What runs while a function of `math` reads its arguments."""
