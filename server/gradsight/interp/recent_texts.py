"""What was said of the last texts of a file: it is said again of one that comes back, and of one in which a line is being typed.

*Unfinished*: one line keeps a text from parsing, and all else is as in the last text that parsed.  What will stand there is
not known, and what was found in the rest is still the last that is known of it: nothing is executed until the text parses.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import NamedTuple

from gradsight.interp.idle_edits import common
from gradsight.interp.parsing import UNREADABLE, problem_of
from gradsight.model.finding import Finding, Related
from gradsight.model.report import Gap, Report, SyntaxProblem
from gradsight.model.settings import Settings
from gradsight.model.sites import Unit
from gradsight.model.source import Span

MOST_TEXTS = 32
ACROSS_LINES = ('"""', "'''")
"""What changes the meaning of the lines behind it."""


@dataclass(frozen=True, slots=True)
class OtherLine:
    """Where two texts differ: in at most one line that is not blank."""

    first: int
    gone: int
    """So many lines of the old text, from the first one on, are not in the new one."""
    come: int

    def moved(self, span: Span) -> Span | None:
        """Where a place of the old text is now; None where it was there."""
        if span.end_line < self.first:
            return span
        return span.moved(self.come - self.gone) if span.line >= self.first + self.gone else None

    def around(self, span: Span) -> Span | None:
        """The same for what the line is but a part of: the function that a call leads to."""
        if span.line < self.first and span.end_line >= self.first + self.gone:
            return replace(span, end_line=span.end_line + self.come - self.gone)
        return self.moved(span)


class Said(NamedTuple):
    """A text, the report on it, and the lines that its units begin at."""

    text: str
    report: Report
    starts: list[int]


class RecentTexts:
    """The reports on the last texts of one file, under the same settings."""

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._said: dict[str, Said] = {}
        self._last: Said | None = None
        """Of the last text that parsed."""

    def known(self, text: str, settings: Settings) -> Report | None:
        """The report on a text that was there before."""
        if settings != self._settings or text not in self._said:
            return None
        said = self._said.pop(text)
        self._put(said)
        return said.report

    def keep(self, text: str, settings: Settings, report: Report, units: list[Unit]) -> None:
        """Remember what was said of a text."""
        if settings != self._settings:
            self._settings, self._last = settings, None
            self._said.clear()
        self._put(Said(text, report, [unit.start for unit in units]))

    def _put(self, said: Said) -> None:
        self._said[said.text] = said
        if len(self._said) > MOST_TEXTS:
            del self._said[next(iter(self._said))]
        if not said.report.syntax_problems:
            self._last = said

    def is_last(self, text: str) -> bool:
        """Whether this is the last text that parsed."""
        return self._last is not None and self._last.text == text

    def is_unfinished(self, text: str, settings: Settings) -> bool:
        """Whether a text, if it does not parse, does not because of one line, in which it differs from the last that did."""
        return (
            self._last is not None
            and settings == self._settings
            and other_line(text, self._last.text) is not None
        )

    def problem_around_line(self, text: str, settings: Settings) -> SyntaxProblem | None:
        """The same, found out by the statement around the line alone: why the text does not parse."""
        if self._last is None or settings != self._settings:
            return None
        starts = self._last.starts
        line = other_line(text, self._last.text)
        if line is None:
            return None
        first = bisect_right(starts, line.first) - 1
        last = bisect_right(starts, line.first + line.gone - 1)
        begin = starts[first] if first >= 0 else 1
        end = starts[last] + line.come - line.gone - 1 if last < len(starts) else None
        return problem_of("\n".join(text.split("\n")[begin - 1 : end]), begin)

    def still_said(self, text: str, problem: SyntaxProblem) -> Report:
        """The report on a text that is unfinished."""
        assert self._last is not None
        report = self._last.report
        line = other_line(text, self._last.text)
        assert line is not None
        path = report.path

        def moved(gap: Gap) -> Gap | None:
            if gap.path or not gap.line:
                return gap
            span = line.moved(Span(gap.line, 0, gap.line, 0))
            return replace(gap, line=span.line) if span is not None else None

        gaps = [gap for gap in map(moved, report.gaps) if gap is not None]
        gaps.append(Gap(problem.message, problem.span.line, kind="syntax"))
        return replace(
            report,
            findings=_moved(report.findings, path, line),
            unused_suppressions=_moved(report.unused_suppressions, path, line),
            gaps=tuple(sorted(gaps, key=lambda gap: (gap.reason, gap.path, gap.line, gap.kind))),
            syntax_problems=(problem,),
        )


def other_line(text: str, old_text: str) -> OtherLine | None:
    """The one line in which two texts differ, where the texts around it mean the same whatever it says."""
    if "\r" in text or "\r" in old_text:
        return None
    lines, old_lines = text.split("\n"), old_text.split("\n")
    shorter = min(len(lines), len(old_lines))
    same = common(lines, old_lines, shorter)
    alike = common(lines[::-1], old_lines[::-1], shorter - same)
    come, gone = lines[same : len(lines) - alike], old_lines[same : len(old_lines) - alike]
    if _filled(come) > 1 or _filled(gone) > 1:
        return None
    if any(map(_reaches_further, (*come, *gone))):
        return None
    return OtherLine(same + 1, len(gone), len(come))


def _reaches_further(line: str) -> bool:
    """Whether it depends on the line what those behind it mean, even if each statement before them is at its end."""
    return (
        any(mark in line for mark in ACROSS_LINES)
        or line.endswith("\\")
        or line.lstrip().startswith("@")
        or UNREADABLE.search(line) is not None
    )


def _filled(lines: list[str]) -> int:
    return sum(1 for line in lines if line.strip())


def _moved(findings: tuple[Finding, ...], path: str, line: OtherLine) -> tuple[Finding, ...]:
    """The findings that speak of nothing but what stands where it stood, or elsewhere."""

    def moved(finding: Finding) -> Finding | None:
        span = line.moved(finding.span) if finding.path == path else finding.span
        if span is None:
            return None
        related: list[Related] = []
        for step in finding.related:
            place = line.around if step.role == "call" else line.moved
            there = place(step.span) if step.path == path else step.span
            if there is None:
                return None
            related.append(replace(step, span=there))
        return replace(finding, span=span, related=tuple(related))

    return tuple(one for one in map(moved, findings) if one is not None)
