"""Fixes that were tried in an earlier run: a file and its imports that did not change are not analysed again for them.

What is kept holds for one text of one file under one setting, with every import that the trials followed, as the results of
checks do; and it lies beside them, under the same seal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from gradsight.cli import kept_folder
from gradsight.cli.checking import Question
from gradsight.cli.result_cache import (
    Entry,
    ImportAnswers,
    cache_folder,
    mark_of,
    read_entries,
    row_of,
    settings_mark,
    write_entries,
)
from gradsight.model.finding import Finding
from gradsight.model.fix import Edit, Fix
from gradsight.model.report import UsedNames
from gradsight.model.settings import Settings
from gradsight.model.source import Source, Span

FILE = "fixes.json"


class KeptFixes:
    """The preferred fixes of findings in the files of one project."""

    def __init__(self, root: str) -> None:
        folder = cache_folder(root)
        is_usable = folder is not None and not kept_folder.refusal(folder)
        self.path = os.path.join(folder, FILE) if folder is not None and is_usable else None
        self.entries = read_entries(self.path) if self.path is not None else {}
        self.imports = ImportAnswers(root, Settings().most_bytes)
        self.sound: dict[str, bool] = {}
        """Whether what is kept about a file still holds, by its path."""
        self.is_changed = False

    def find(self, source: Source, settings: Settings, finding: Finding) -> tuple[Fix | None] | None:
        """The fix in a tuple, or that there is none in a tuple; None where nothing is known."""
        try:
            entry = self._entry(source, settings)
            kept = entry["fixes"][key_of(finding)] if entry is not None else None
            if kept is None:
                return None
            return (None,) if not kept else (_fix(kept),)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            return None

    def keep(
        self,
        source: Source,
        settings: Settings,
        finding: Finding,
        fix: Fix | None,
        asked: Iterable[Question],
        used: Iterable[UsedNames],
    ) -> None:
        """Remember the fix of a finding, with all that was asked about imports for it, and used of them."""
        if self.path is None:
            return
        entry = self._entry(source, settings)
        if entry is None:
            entry = {
                "text": mark_of(source.text),
                "settings": settings_mark(settings),
                "imports": [],
                "used": [],
                "fixes": {},
            }
        before: list[Question] = [(module, level, path) for module, level, path, *_ in entry["imports"]]
        entry["imports"] = self.imports.answered(dict.fromkeys([*before, *asked]))
        entry["used"] += [row for row in map(row_of, used) if row not in entry["used"]]
        entry["fixes"][key_of(finding)] = _plain(fix) if fix is not None else []
        self.entries[source.path] = entry
        self.sound[source.path] = self.is_changed = True

    def save(self) -> None:
        """Write what is known."""
        if self.is_changed and self.path is not None:
            write_entries(self.path, self.entries)
            self.is_changed = False

    def _entry(self, source: Source, settings: Settings) -> Entry | None:
        entry = self.entries.get(source.path)
        if entry is None:
            return None
        if source.path not in self.sound:
            self.sound[source.path] = self._is_sound(entry, source, settings)
        return entry if self.sound[source.path] else None

    def _is_sound(self, entry: Entry, source: Source, settings: Settings) -> bool:
        try:
            return (
                entry["text"] == mark_of(source.text)
                and entry["settings"] == settings_mark(settings)
                and self.imports.hold(entry["imports"], entry["used"])
            )
        except (KeyError, TypeError, ValueError):
            return False


def key_of(finding: Finding) -> str:
    """Tells the findings of one text apart."""
    span = finding.span
    about = [finding.code, finding.message, span.line, span.column, span.end_line, span.end_column]
    return mark_of(json.dumps(about))


def _plain(fix: Fix) -> list[Any]:
    edits = [
        [edit.span.line, edit.span.column, edit.span.end_line, edit.span.end_column, edit.text]
        for edit in fix.edits
    ]
    return [fix.title, fix.safety, fix.code, edits]


def _fix(kept: list[Any]) -> Fix:
    title, safety, code, edits = kept
    return Fix(title, safety, tuple(Edit(Span(*place), text) for *place, text in edits), code, preferred=True)
