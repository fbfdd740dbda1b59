"""How far a long run is, on one line of a terminal that is wiped at the end; nothing at all in a pipe."""

from __future__ import annotations

import time
from typing import TextIO

PATIENCE = 1.0
PAUSE = 0.1


class Progress:
    """Counts steps; speaks only after `PATIENCE` seconds, and not more often than a reader can follow."""

    def __init__(self, total: int, out: TextIO) -> None:
        self.total = total
        self.out = out
        self.done = 0
        self.is_shown = False
        self.next_time = time.monotonic() + PATIENCE
        self.is_terminal = out.isatty()

    def step(self) -> None:
        """One more file is done."""
        self.done += 1
        if not self.is_terminal:
            return
        now = time.monotonic()
        if now >= self.next_time:
            self.next_time = now + PAUSE
            self.is_shown = True
            self.out.write(f"\r\x1b[Kchecking: {self.done} of {self.total} files")
            self.out.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_shown:
            self.out.write("\r\x1b[K")
            self.out.flush()
