"""How far a long run is, on one line of a terminal that is wiped at the end; nothing at all in a pipe."""

from __future__ import annotations

import time
from typing import TextIO

PATIENCE = 1.0
PAUSE = 0.1
WIDTH = 20
_WIPE = "\r\x1b[K"


class TerminalLine:
    """One line that changes."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.is_terminal = out.isatty()
        self.is_shown = False

    def show(self, text: str) -> None:
        """Put a text in the place of the last one."""
        if self.is_terminal:
            self.is_shown = True
            self.out.write(_WIPE + text)
            self.out.flush()

    def clear(self) -> None:
        """Leave nothing behind."""
        if self.is_shown:
            self.is_shown = False
            self.out.write(_WIPE)
            self.out.flush()


class CheckProgress:
    """Counts steps; speaks only after `PATIENCE` seconds, and not more often than a reader can follow."""

    def __init__(self, total: int, out: TextIO) -> None:
        self.total = total
        self.line = TerminalLine(out)
        self.done = 0
        self.next_time = time.monotonic() + PATIENCE

    def step(self) -> None:
        """One more file is done."""
        self.done += 1
        if not self.line.is_terminal:
            return
        now = time.monotonic()
        if now >= self.next_time:
            self.next_time = now + PAUSE
            full = WIDTH * self.done // max(1, self.total)
            bar = f"[{'=' * full}{' ' * (WIDTH - full)}]"
            self.line.show(f"checking {bar} {self.done} of {self.total} files")

    def __enter__(self) -> CheckProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self.line.clear()
