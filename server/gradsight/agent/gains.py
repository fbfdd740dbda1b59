"""What a run knows of the gradient of one leaf."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradsight.agent.sites import Stack


@dataclass
class Gains:
    """The gradient of one leaf: which backwards are in it, and up to which one a step has used it."""

    since_clear: list[int] = field(default_factory=list)
    ever: int = 0
    last: int = 0
    consumed: int = 0
    dropped_at: Stack = ()
    dropped: int = 0
    drops: int = 0
    read: int = 0
    """The last backward whose gradient the program looked at by itself."""

    def replaced(self, backwards: int) -> None:
        """Other numbers stand there now: clipped by hand, averaged, or put back."""
        self.since_clear = [backwards]
        self.ever += 1
        self.last = backwards
