"""The results of many files as one list: each finding once, in reading order, suppressed where it stands.

A finding may lie in a file that another one imports; its suppression comment is then in that other file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gradsight.cli.checking import Result
from gradsight.model.finding import Finding
from gradsight.model.gravest import gravest
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.model.suppressions import Suppression, suppressions_in


@dataclass(frozen=True, slots=True)
class MergedResults:
    """What a whole run found."""

    findings: tuple[Finding, ...]
    checked: int
    looked_at: int = 0
    """Files that were read, those without torch included."""
    results: tuple[Result, ...] = ()
    """What came of each file, for those who want to know what was not understood."""
    is_quiet: bool = False
    """Whether nothing but the findings is wanted."""

    @property
    def alarms(self) -> int:
        """The number of findings that make a run fail."""
        return sum(finding.severity in ("error", "warning") for finding in self.findings)


def gather(
    results: Iterable[Result],
    settings: Settings,
    source_of: Callable[[str], Source | None],
    is_wanted: Callable[[str], bool] = lambda path: True,
) -> MergedResults:
    """All findings of all files.  `is_wanted` says of a file that was only imported whether it is spoken of."""
    spoken_of: list[Finding] = []
    unused: dict[tuple[str, int], Finding] = {}
    comments: dict[str, list[Suppression]] = {}
    checked = 0
    results = tuple(results)
    for result in results:
        checked += not result.is_skipped and not result.unreadable
        for finding in result.unused_suppressions:
            unused[(finding.path, finding.span.line)] = finding
        for finding in result.findings:
            if finding.path != result.path and not is_wanted(finding.path):
                continue
            spoken_of.append(finding)
    found = gravest(spoken_of)
    for key, finding in list(found.items()):
        if finding.path not in comments:
            source = source_of(finding.path)
            comments[finding.path] = suppressions_in(source) if source is not None else []
        for comment in comments[finding.path]:
            if comment.silences(finding):
                found.pop(key, None)
                unused.pop((finding.path, comment.span.line), None)
    shown = [*found.values(), *unused.values()]
    if not settings.hints:
        shown = [finding for finding in shown if finding.severity != "hint"]
    shown.sort(key=lambda finding: (finding.path, finding.span.line, finding.span.column, finding.code))
    looked_at = sum(not result.unreadable for result in results)
    return MergedResults(tuple(shown), checked, looked_at, results)
