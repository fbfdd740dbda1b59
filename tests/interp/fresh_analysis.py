"""A fresh analysis as the oracle for one that reuses what it remembers, text by text.

Where a line is being typed and the text does not parse, what was found in the last text that did may be said again:
at the same lines, and of nothing that stood on the line itself.
"""

from __future__ import annotations

from gradsight.analysis import Finder, analyze
from gradsight.model import Finding, Report, Source

Told = set[tuple[str, ...]]


class FreshAnalysis:
    """What there is to say of each text, and of the last of them that parsed."""

    def __init__(self, finder: Finder | None = None) -> None:
        self.finder = finder
        self.parsed: tuple[Report, list[str]] = Report(""), []
        self.waited = 0
        """So many texts were not analysed, because a line of them was being typed."""

    def agrees(self, report: Report, source: Source) -> bool:
        """Whether a report on the next text is right."""
        fresh = analyze(source, finder=self.finder)
        lines = source.text.split("\n")
        if not fresh.syntax_problems:
            self.parsed = fresh, lines
        if report == fresh:
            return True
        self.waited += 1
        return bool(fresh.syntax_problems and report.syntax_problems) and self.is_still_said(report, lines)

    def is_still_said(self, report: Report, lines: list[str]) -> bool:
        before, last = self.parsed
        same = next((at for at, line in enumerate(last) if lines[at : at + 1] != [line]), len(last))
        behind = len(last) - next(
            (at for at, line in enumerate(reversed(last)) if lines[len(lines) - 1 - at] != line), len(last)
        )
        typed = {line for line in last[same:behind] if line.strip()}
        said, known = told(report, lines), told(before, last)
        return len(typed) <= 1 and said <= known and all(typed & set(one) for one in known - said)


def told(report: Report, lines: list[str]) -> Told:
    """What a report says, with the lines that it speaks of."""
    found: Told = set()
    for finding in (*report.findings, *report.unused_suppressions):
        found.add((finding.code, finding.message, *lines_of(finding, report.path, lines)))
    return found


def lines_of(finding: Finding, path: str, lines: list[str]) -> list[str]:
    """Of a whole function that was called, none."""
    spans = [finding.span] if finding.path == path else []
    steps = [step for step in finding.related if step.path == path]
    spans += [step.span for step in steps if step.role != "call" or step.span.line == step.span.end_line]
    return [line for span in spans for line in lines[span.line - 1 : span.end_line]]
