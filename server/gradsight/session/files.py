"""Files of the workspace as they are now: what is open counts as the editor shows it, the rest as it lies on disk.

*Stamp* is what tells two contents of a file apart without reading it; None for a file that is not there.
The thread that analyses reads through `finder_for`; the thread that hears of changes calls `forget`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.reading import Unreadable, decode, read_bytes
from gradsight.session.workspace import WorkspaceFinder, project_root

if TYPE_CHECKING:
    from gradsight.session.configuration import Configuration

FILE = "pyproject.toml"
Stamp = tuple[int, int] | None


class Files:
    """What was read from disk, and when to read it again."""

    def __init__(self) -> None:
        self.open_sources: Mapping[str, Source] = {}
        """What is open, by path; replaced as a whole, never changed."""
        self._read: dict[str, Source | None] = {}
        self._stamps: dict[str, Stamp] = {}
        self._finders: dict[str, WorkspaceFinder] = {}
        self._missed: dict[str, set[str]] = {}
        self._roots: dict[str, str] = {}
        self._configurations: dict[str, Configuration] = {}

    def root_of(self, path: str) -> str:
        """The project that a file belongs to."""
        folder = os.path.dirname(path)
        if folder not in self._roots:
            self._roots[folder] = project_root(path)
        return self._roots[folder]

    def finder_for(self, path: str) -> WorkspaceFinder | None:
        """Finds the modules that a file imports; None for a text that lives nowhere."""
        if not os.path.isabs(path):
            return None
        root = self.root_of(path)
        finder = self._finders.get(root)
        if finder is None:
            finder = self._finders[root] = WorkspaceFinder(root, self.source_at, missed=self._missed)
        return finder

    def configuration_for(self, path: str) -> Configuration:
        """The nearest pyproject.toml's word on a file."""
        from gradsight.session.configuration import Configuration, configuration_for

        if not os.path.isabs(path):
            return Configuration()
        folder = os.path.dirname(path)
        if folder not in self._configurations:
            for candidate in _configuration_files(folder):
                self._stamps[candidate] = stamp_of(candidate)
            self._configurations[folder] = configuration_for(path)
        return self._configurations[folder]

    def asked_for(self, path: str) -> bool:
        """Whether an analysis looked for a module at this path, or settings in it."""
        return path in self._stamps

    def missed_in(self, path: str) -> set[str]:
        """The folders of files that looked for this one in vain, until now."""
        return self._missed.pop(path, set())

    def forget(self, paths: Iterable[str]) -> None:
        """These files changed, came or went."""
        for path in paths:
            self._read.pop(path, None)
            if path in self._stamps:
                self._stamps[path] = stamp_of(path)
            if os.path.basename(path) == FILE:
                self._configurations.clear()
                self._roots.clear()
        self._finders.clear()

    def changed_on_disk(self) -> set[str]:
        """Files that were asked for and look different now, for editors that do not tell."""
        return {path for path, stamp in list(self._stamps.items()) if stamp_of(path) != stamp}

    def source_at(self, path: str) -> Source | None:
        """A Python file, as the editor shows it or as it lies on disk."""
        self._stamps.setdefault(path, stamp_of(path))
        shown = self.open_sources.get(path)
        if shown is not None:
            return shown
        if path not in self._read:
            self._read[path] = read_source(path)
        return self._read[path]


def read_source(path: str, most: int = Settings().most_bytes) -> Source | None:
    """A Python file from disk; None where there is nothing to read."""
    data = read_bytes(path, most) if os.path.isfile(path) else Unreadable("not a file")
    text = decode(data) if isinstance(data, bytes) else data
    return Source(path, text) if isinstance(text, str) else None


def stamp_of(path: str) -> Stamp:
    """The stamp of a file as it is now."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return (status.st_mtime_ns, status.st_size)


def _configuration_files(folder: str) -> list[str]:
    found = []
    while True:
        found.append(os.path.join(folder, FILE))
        above = os.path.dirname(folder)
        if above == folder:
            return found
        folder = above
