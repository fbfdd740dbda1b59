"""Attempts to prove one finding: the minimal program around it, with one made-up call after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradsight.model.finding import Finding
from gradsight.probe.inputs import calls_for
from gradsight.probe.minimal import Minimal
from gradsight.probe.outcome import CouldNotRun, Outcome

FULLER_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Attempt:
    """One program: as it is run, with the lines of the file, and as it is shown; `of` is the text it was cut out of."""

    text: str
    snippet: str
    of: str
    is_last: bool = False

    def is_about(self, text: str) -> bool:
        """Whether the file is still the one that the program was cut out of."""
        return self.of == text

    def is_worth_another(self, outcome: Outcome) -> bool:
        """Whether another attempt can do better; where nothing runs, none can."""
        return not isinstance(outcome, CouldNotRun)


def attempts(minimal: Minimal | None, finding: Finding, text: str) -> Iterator[Attempt]:
    """Programs to try, the smallest and most plausible first; a file that cannot be cut is tried as a whole."""
    if minimal is None:
        yield Attempt(text, text, text, True)
        return
    calls = calls_for(minimal, finding)
    for call in calls:
        yield Attempt(minimal.text(call), minimal.snippet(call), text)
    last = calls[:FULLER_ATTEMPTS]
    for number, call in enumerate(last, 1):
        fuller = minimal.text(call, is_fuller=True)
        yield Attempt(fuller, minimal.snippet(call, is_fuller=True), text, number == len(last))
