"""The fix of a finding as JSON: what `gradsight fix` would do about it, in the terms of the text it was found in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradsight.cli.checking import Noting, Question
from gradsight.cli.documents import Documents
from gradsight.cli.kept_fixes import KeptFixes
from gradsight.model.finding import Finding
from gradsight.model.fix import Edit, Fix, Safety
from gradsight.model.report import Report
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.reading import reader
from gradsight.session.workspace import WorkspaceFinder, project_root


class FixBook:
    """The fixes of the findings of one run.  Texts that are tried one after the other are analysed by what differs.

    As a context it keeps what was tried for the next run, where that is wanted.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._workshops: dict[str, _Workshop] = {}
        self._projects: dict[tuple[str, str], _Project] = {}
        self._kept: dict[str, KeptFixes] = {}

    def __enter__(self) -> FixBook:
        return self

    def __exit__(self, *_: object) -> None:
        for kept in self._kept.values():
            kept.save()

    def fix_of(self, finding: Finding) -> dict[str, Any] | None:
        """The preferred fix: a message, whether it is safe, and edits whose rows and columns start at 1."""
        if finding.severity == "hint":
            return None
        fix = self._preferred(finding)
        if fix is None:
            return None
        edits = [self._edit(finding.path, edit) for edit in fix.edits]
        return {"message": fix.title, "applicability": fix.safety, "edits": edits}

    def safety(self, finding: Finding) -> Safety | None:
        """How safe the preferred fix is; None where there is none."""
        fix = self._preferred(finding)
        return fix.safety if fix is not None else None

    def _preferred(self, finding: Finding) -> Fix | None:
        path = finding.path
        source = self._documents.source(path)
        if source is None:
            return None
        settings = self._documents.settings.get(path, Settings())
        kept = self._kept_of(path)
        known = kept.find(source, settings, finding) if kept is not None else None
        if known is not None:
            return known[0]
        workshop = self._workshop(source, settings)
        fix = workshop.preferred(finding)
        if kept is not None and not workshop.is_faulty:
            kept.keep(source, settings, finding, fix, workshop.asked)
        return fix

    def _kept_of(self, path: str) -> KeptFixes | None:
        if not self._documents.keeps_fixes or path in self._documents.given:
            return None
        root = project_root(path)
        if root not in self._kept:
            self._kept[root] = KeptFixes(root)
        return self._kept[root]

    def _workshop(self, source: Source, settings: Settings) -> _Workshop:
        known = self._workshops.get(source.path)
        if known is None:
            key = (project_root(source.path), settings.models)
            if key not in self._projects:
                self._projects[key] = _Project(key[0])
            known = self._workshops[source.path] = _Workshop(source, settings, self._projects[key])
        return known

    def _edit(self, path: str, edit: Edit) -> dict[str, Any]:
        position = self._documents.position(path, edit.span)
        place = {
            "content": edit.text,
            "location": {"row": position.span.line, "column": position.span.column + 1},
            "end_location": {"row": position.span.end_line, "column": position.span.end_column + 1},
        }
        return place if position.cell is None else {"cell": position.cell, **place}


class _Project:
    """What the texts of one project import: it is found and executed once for all of them."""

    def __init__(self, root: str) -> None:
        from gradsight.analysis import no_modules

        self.finder = WorkspaceFinder(root, reader())
        self.modules = no_modules()


class _Workshop:
    """One text, verified in the workspace that its file belongs to."""

    def __init__(self, source: Source, settings: Settings, project: _Project) -> None:
        from gradsight.analysis import Analyser

        self._source = source
        self._settings = settings
        self._finder = Noting(project.finder)
        self.is_faulty = False
        """Whether we failed on the way: then what came of it is not worth keeping."""
        self._analyser = Analyser(project.modules)
        self._report = self._check(source)

    @property
    def asked(self) -> Iterable[Question]:
        """What was asked about imports so far."""
        return self._finder.asked

    def preferred(self, finding: Finding) -> Fix | None:
        """The fix that is offered first."""
        from gradsight.fixing import fixes_for

        fixes = fixes_for(self._source, finding, self._settings, check=self._check, report=self._report)
        return fixes[0] if fixes else None

    def _check(self, source: Source) -> Report:
        report = self._analyser.analyze(source, self._settings, self._finder)
        self.is_faulty = self.is_faulty or any(gap.kind in ("internal", "detector") for gap in report.gaps)
        return report
