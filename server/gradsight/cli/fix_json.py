"""The fix of a finding as JSON: what `gradsight fix` would do about it, in the terms of the text it was found in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradsight.cli.checking import Noting
from gradsight.cli.documents import Documents
from gradsight.cli.kept_fixes import KeptFixes
from gradsight.model.finding import Finding
from gradsight.model.fix import Edit, Fix, Safety
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.reading import reader
from gradsight.session.workspace import WorkspaceFinder, project_root

if TYPE_CHECKING:
    from gradsight.cli.fix_trials import FixTrials


class FixBook:
    """The fixes of the findings of one run.  Texts that are tried one after the other are analysed by what differs.

    As a context it keeps what was tried for the next run, where that is wanted.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._trials: dict[str, FixTrials] = {}
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
        told = self._documents.tried.get(path)
        if told is not None and (each := told.find(finding)) is not None:
            if kept is not None:
                kept.keep(source, settings, finding, each.fix, told.imports, told.used)
            return each.fix
        trials = self._trials_of(source, settings)
        fix = trials.preferred(finding)
        if kept is not None and not trials.is_faulty:
            kept.keep(source, settings, finding, fix, trials.asked, trials.used)
        return fix

    def _kept_of(self, path: str) -> KeptFixes | None:
        if not self._documents.keeps_fixes or path in self._documents.given:
            return None
        root = project_root(path)
        if root not in self._kept:
            self._kept[root] = KeptFixes(root)
        return self._kept[root]

    def _trials_of(self, source: Source, settings: Settings) -> FixTrials:
        known = self._trials.get(source.path)
        if known is None:
            from gradsight.analysis import Analyser
            from gradsight.cli.fix_trials import FixTrials

            key = (project_root(source.path), settings.models)
            if key not in self._projects:
                self._projects[key] = _Project(key[0])
            project = self._projects[key]
            analyser, finder = Analyser(project.modules), Noting(project.finder)
            known = self._trials[source.path] = FixTrials(source, settings, finder, analyser)
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
