"""Attempts to prove one finding: the minimal program around it, with one made-up call after the other."""

from __future__ import annotations

import ast
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
    is_about_others: bool = False
    """Whether the inputs are ours, and the finding is about values that the program makes outside of any function."""

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
    is_about_others = _speaks_of_the_top(finding, text)
    for call in calls_for(minimal, finding):
        yield from _lessons(minimal, call, text, "lines", tried, is_about_others)
    if any(line.strip() for line in minimal.called):
        yield Attempt(minimal.text("", "called"), minimal.snippet("", "called"), text)
    for call in calls_for(minimal, finding):
        yield from _lessons(minimal, call, text, "fuller", tried, is_about_others)


def _lessons(
    minimal: Minimal, start: MadeUpCall, text: str, extent: Extent, tried: set[str], is_about_others: bool
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
        is_made_up = call.entry is not None
        outcome = yield Attempt(program, shown, text, is_made_up, is_lossy, is_made_up and is_about_others)
        call = call.after(_complaint(outcome))


def _speaks_of_the_top(finding: Finding, text: str) -> bool:
    """Whether something on the way to a finding, other than a call, stands outside of all functions and classes."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return False
    inside = [
        range(one.lineno, (one.end_lineno or one.lineno) + 1)
        for one in body
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]
    lines = {step.span.line for step in finding.related if step.path == finding.path and step.role != "call"}
    return any(not any(line in extent for extent in inside) for line in lines)


def _complaint(outcome: Outcome | None) -> str:
    """What torch or Python had against a program."""
    report = outcome.report if isinstance(outcome, (Observed, Raised)) else {}
    error = report.get("error") or {}
    return str(error.get("message") or "")
