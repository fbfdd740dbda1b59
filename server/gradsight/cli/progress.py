"""How far a check or a probe is, on one line of a terminal that is wiped at the end; nothing at all in a pipe."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from gradsight.probe.outcome import Progress

PATIENCE = 1.0
PAUSE = 0.1


class CheckLine:
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

    def __enter__(self) -> CheckLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_shown:
            self.out.write("\r\x1b[K")
            self.out.flush()


class ProbeLine:
    """Tells how far a running program is, under a title that may change."""

    def __init__(self, out: TextIO, title: str = "probing") -> None:
        self.title = title
        self._out = out
        self._shown = 0
        self._is_terminal = out.isatty()

    def show(self, progress: Progress) -> None:
        """What the program has done so far."""
        faults = f", {progress.faults} fault{'s' if progress.faults != 1 else ''}" if progress.faults else ""
        done = f"{progress.backwards} backward, {progress.steps} steps, {progress.seconds:.1f} s{faults}"
        self._write(f"{self.title}: {done}")

    def begin(self, title: str) -> None:
        """Another program starts."""
        self.title = title
        self._write(title)

    def clear(self) -> None:
        """Wipe the line."""
        if self._shown:
            self._out.write("\r" + " " * self._shown + "\r")
            self._out.flush()
            self._shown = 0

    def _write(self, text: str) -> None:
        if self._is_terminal:
            self._out.write("\r" + text.ljust(self._shown))
            self._out.flush()
            self._shown = max(self._shown, len(text))
