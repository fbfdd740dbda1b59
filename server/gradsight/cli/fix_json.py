"""The fix of a finding as JSON: what `gradsight fix` would do about it, in the terms of the text it was found in."""

from __future__ import annotations

from typing import Any

from gradsight.cli.documents import Documents
from gradsight.model.finding import Finding
from gradsight.model.fix import Edit, Fix, Safety
from gradsight.model.report import Report
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.reading import reader
from gradsight.session.workspace import WorkspaceFinder, project_root


class FixBook:
    """The fixes of the findings of one run.  Texts that are tried one after the other are analysed by what differs."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._workshops: dict[str, _Workshop | None] = {}

    def fix_of(self, finding: Finding) -> dict[str, Any] | None:
        """The preferred fix: a message, whether it is safe, and edits whose rows and columns start at 1."""
        if finding.severity == "hint":
            return None
        workshop = self._workshop(finding.path)
        fix = workshop.preferred(finding) if workshop is not None else None
        if fix is None:
            return None
        edits = [self._edit(finding.path, edit) for edit in fix.edits]
        return {"message": fix.title, "applicability": fix.safety, "edits": edits}

    def safety(self, finding: Finding) -> Safety | None:
        """How safe the preferred fix is; None where there is none."""
        workshop = self._workshop(finding.path)
        fix = workshop.preferred(finding) if workshop is not None else None
        return fix.safety if fix is not None else None

    def _workshop(self, path: str) -> _Workshop | None:
        if path not in self._workshops:
            source = self._documents.source(path)
            settings = self._documents.settings.get(path, Settings())
            self._workshops[path] = _Workshop(source, settings) if source is not None else None
        return self._workshops[path]

    def _edit(self, path: str, edit: Edit) -> dict[str, Any]:
        position = self._documents.position(path, edit.span)
        place = {
            "content": edit.text,
            "location": {"row": position.span.line, "column": position.span.column + 1},
            "end_location": {"row": position.span.end_line, "column": position.span.end_column + 1},
        }
        return place if position.cell is None else {"cell": position.cell, **place}


class _Workshop:
    """One text, verified in the workspace that its file belongs to."""

    def __init__(self, source: Source, settings: Settings) -> None:
        from gradsight.analysis import Analyser

        self._source = source
        self._settings = settings
        self._finder = WorkspaceFinder(project_root(source.path), reader())
        self._analyser = Analyser()
        self._report = self._check(source)

    def preferred(self, finding: Finding) -> Fix | None:
        """The fix that is offered first."""
        from gradsight.fixing import fixes_for

        fixes = fixes_for(self._source, finding, self._settings, check=self._check, report=self._report)
        return fixes[0] if fixes else None

    def _check(self, source: Source) -> Report:
        return self._analyser.analyze(source, self._settings, self._finder)
