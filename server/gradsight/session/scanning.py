"""Files of the workspace that nobody has open: analysed one after the other in the background, and remembered."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradsight.model.finding import Finding
from gradsight.model.relevance import is_about_torch
from gradsight.model.settings import Settings
from gradsight.session.files import Stamp, read_source, stamp_of
from gradsight.session.imported_modules import Knowledge
from gradsight.session.schedule import Urgency
from gradsight.session.starting_files import starts_torch

if TYPE_CHECKING:
    from gradsight.session.session import EditorSession

MOST_FILES = 5_000


@dataclass(frozen=True, slots=True)
class Scanned:
    """What was found in a file as it was, under the settings that held."""

    stamp: Stamp
    settings: Settings
    findings: tuple[Finding, ...]


class Scanner:
    """Remembers what was found where, so that asking again costs a look at each file's stamp."""

    def __init__(self, session: EditorSession) -> None:
        self._session = session
        self._known: dict[str, Scanned] = {}
        self._imported: Knowledge | None = None
        """What is known of imported modules, while a scan goes on."""

    def forget(self) -> None:
        """Files changed that others import: nothing that was found need hold any more."""
        self._known.clear()

    async def scan(self, folders: Sequence[str]) -> AsyncIterator[tuple[str, tuple[Finding, ...]]]:
        """The files below these folders with what there is to say about them, those that say nothing included."""
        paths = await self._session.worker.submit(Urgency.BACKGROUND, lambda: _python_files(folders))
        for path in paths:
            if self._session.open.at_path(path) is None:
                yield path, await self._findings(path)
        self._imported = None
        self._known = {path: self._known[path] for path in paths if path in self._known}

    async def _findings(self, path: str) -> tuple[Finding, ...]:
        settings = self._session.settings_at(path)
        stamp = stamp_of(path)
        known = self._known.get(path)
        if known is None or known.stamp != stamp or known.settings != settings:
            found = await self._session.worker.submit(
                Urgency.BACKGROUND, lambda: self._analyse(path, settings)
            )
            known = self._known[path] = Scanned(stamp, settings, found)
        return known.findings

    def _analyse(self, path: str, settings: Settings) -> tuple[Finding, ...]:
        from gradsight.analysis import Analyser
        from gradsight.session.walking import is_excluded

        if is_excluded(path, self._session.files.root_of(path), settings.exclude):
            return ()
        source = read_source(path, settings.most_bytes)
        finder = self._session.files.finder_for(path)
        if source is None or not (
            is_about_torch(source.text, settings.models)
            or (finder is not None and starts_torch(source, finder, settings.models))
        ):
            return ()
        with self._session.imported.taken(path, settings, finder, self._imported) as known:
            self._imported = known
            report = Analyser(known.modules).analyze(source, settings, finder)
        return tuple(
            finding
            for finding in report.findings
            if finding.path == path and (settings.hints or finding.severity != "hint")
        )


def _python_files(folders: Sequence[str]) -> list[str]:
    from gradsight.session.walking import walk

    found: dict[str, None] = {}
    for folder in folders:
        for path, _ in walk(folder, folder):
            if path.endswith((".py", ".pyw")):
                found[os.path.normpath(path)] = None
            if len(found) >= MOST_FILES:
                return list(found)
    return list(found)
