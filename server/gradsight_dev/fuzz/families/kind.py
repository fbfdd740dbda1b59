"""A kind of hazard: its family, how it is written, what torch is expected to do, and which rules name it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gradsight_dev.fuzz.families.script import Script

Effect = Literal["harms", "same"]
"""Against its twin, the hazardous version raises or computes something else, or (a safe look-alike) the same."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`codes` are the beginnings of those that tell this story."""

    family: str
    name: str
    write: Callable[[Script], None]
    effect: Effect
    codes: tuple[str, ...] = ("GS",)
