"""Numbers that a small edit seldom changes."""

from __future__ import annotations

COARSEST_LINES = 8
STEADY_BITS = 4
"""Numbers of one length in bits are rounded to eight."""


def steady(number: int) -> int:
    """The number rounded up to one of a few: a line more or less seldom changes a budget, and what was done within it holds."""
    step = max(COARSEST_LINES, 1 << max(0, number.bit_length() - STEADY_BITS))
    return -(-number // step) * step
