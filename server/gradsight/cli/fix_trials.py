"""The fixes of one text, tried in the workspace that its file belongs to."""

from __future__ import annotations

from collections.abc import Iterable

from gradsight import fixing
from gradsight.analysis import Analyser
from gradsight.cli.checking import Noting, Question
from gradsight.model.finding import Finding
from gradsight.model.fix import Fix
from gradsight.model.report import Report, UsedNames
from gradsight.model.settings import Settings
from gradsight.model.source import Source


class FixTrials:
    """Texts that are tried one after the other are analysed by what differs, by the analyser that has `report` of the first."""

    def __init__(
        self,
        source: Source,
        settings: Settings,
        finder: Noting,
        analyser: Analyser,
        report: Report | None = None,
    ) -> None:
        self._source = source
        self._settings = settings
        self._finder = finder
        self._analyser = analyser
        self.is_faulty = report is not None and _is_faulty(report)
        """Whether we failed on the way: then what came of it is not worth keeping."""
        self._reports = [report] if report is not None else []
        self._report = report if report is not None else self._check(source)

    @property
    def asked(self) -> Iterable[Question]:
        """What was asked about imports so far."""
        return self._finder.asked

    @property
    def used(self) -> Iterable[UsedNames]:
        """What was used of modules so far."""
        return dict.fromkeys(used for report in self._reports for used in report.used())

    def preferred(self, finding: Finding) -> Fix | None:
        """The fix that is offered first."""
        fixes = fixing.fixes_for(
            self._source, finding, self._settings, check=self._check, report=self._report
        )
        return fixes[0] if fixes else None

    def _check(self, source: Source) -> Report:
        report = self._analyser.analyze(source, self._settings, self._finder)
        self.is_faulty = self.is_faulty or _is_faulty(report)
        self._reports.append(report)
        return report


def _is_faulty(report: Report) -> bool:
    return any(gap.kind in ("internal", "detector") for gap in report.gaps)
