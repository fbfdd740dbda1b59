"""Attempts to prove one finding: the minimal program around it, with one made-up call after the other."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from gradsight.model.finding import Finding
from gradsight.probe.inputs import MOST_LESSONS, MadeUpCall, calls_for
from gradsight.probe.minimal import Extent, Minimal
from gradsight.probe.outcome import CouldNotRun, Observed, Outcome, Raised


@dataclass(frozen=True, slots=True)
class Attempt:
    """One program: as it is run, with the lines of the file, and as it is shown; `of` is the text it was cut out of."""

    text: str
    snippet: str
    of: str
    is_made_up: bool = False
    """Whether the inputs are ours: that nothing fails then proves little by itself."""
    is_lossy: bool = False
    """Whether statements are left out that give names other values: where all goes well with these, it need not with those."""

    def is_about(self, text: str) -> bool:
        """Whether the file is still the one that the program was cut out of."""
        return self.of == text


class Attempts:
    """Programs to try, the smallest and most plausible first; each outcome makes the next one better."""

    def __init__(self, programs: Generator[Attempt, Outcome | None, None]) -> None:
        self._programs = programs
        self._has_begun = False

    def next(self, outcome: Outcome | None = None) -> Attempt | None:
        """The next program, after the outcome of the one before; None when there is none left."""
        if isinstance(outcome, CouldNotRun):
            return None
        try:
            if self._has_begun:
                return self._programs.send(outcome)
            self._has_begun = True
            return next(self._programs)
        except StopIteration:
            return None


def attempts(minimal: Minimal | None, finding: Finding, text: str) -> Attempts:
    """The programs that may prove a finding of a text."""
    return Attempts(_programs(minimal, finding, text))


def again(attempt: Attempt) -> Attempts:
    """The one program that has proved it before."""
    return Attempts(_only(attempt))


def _only(attempt: Attempt) -> Generator[Attempt, Outcome | None, None]:
    yield attempt


def _programs(
    minimal: Minimal | None, finding: Finding, text: str
) -> Generator[Attempt, Outcome | None, None]:
    """A file that cannot be cut is tried as a whole."""
    if minimal is None:
        yield Attempt(text, text, text)
        return
    tried: set[str] = set()
    for call in calls_for(minimal, finding):
        yield from _lessons(minimal, call, text, "lines", tried)
    if any(line.strip() for line in minimal.called):
        yield Attempt(minimal.text("", "called"), minimal.snippet("", "called"), text)
    for call in calls_for(minimal, finding):
        yield from _lessons(minimal, call, text, "fuller", tried)


def _lessons(
    minimal: Minimal, start: MadeUpCall, text: str, extent: Extent, tried: set[str]
) -> Generator[Attempt, Outcome | None, None]:
    """A call, and what torch's complaints make of it."""
    call: MadeUpCall | None = start
    for _ in range(MOST_LESSONS):
        if call is None:
            return
        written = call.text()
        program = minimal.text(written, extent)
        if program in tried:
            return
        tried.add(program)
        is_lossy = extent == "lines" and minimal.lines != minimal.fuller
        shown = minimal.snippet(written, extent)
        outcome = yield Attempt(program, shown, text, call.entry is not None, is_lossy)
        call = call.after(_complaint(outcome))


def _complaint(outcome: Outcome | None) -> str:
    """What torch or Python had against a program."""
    report = outcome.report if isinstance(outcome, (Observed, Raised)) else {}
    error = report.get("error") or {}
    return str(error.get("message") or "")
