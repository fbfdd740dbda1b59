"""Imports inside the workspace: from a module's name and the file that imports it to the source of the module.

*Root* is the folder of the project: nothing above it is ever read.  A name is looked for where Python would find it:
beside the importing file, at the top of the importing file's package, at the root, and in `src/` below the root.
torch itself is never handed in, not even to a check of its own sources: the engine knows it by measured facts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gradsight.model.source import Source
from gradsight.session import disk

ROOT_MARKS = ("pyproject.toml", ".git", "setup.py", "setup.cfg", ".hg")
INSTALLED = ("site-packages", "dist-packages")
KNOWN_BY_FACTS = frozenset({"torch"})


@dataclass(frozen=True, slots=True)
class WorkspaceFinder:
    """`finder(module, level, importing_path)`: the source of a workspace module, or None for everybody else's."""

    root: str
    read: Callable[[str], Source | None]
    known: dict[tuple[str, int, str], Source | None] = field(default_factory=dict)
    missed: dict[str, set[str]] = field(default_factory=dict)
    """By path of a file that was looked for in vain: the folders of those who import it."""

    def __call__(self, module: str, level: int, importing_path: str) -> Source | None:
        key = (module, level, os.path.dirname(importing_path))
        if key not in self.known:
            self.known[key] = self._find(*key)
        return self.known[key]

    def _find(self, module: str, level: int, folder: str) -> Source | None:
        parts = module.split(".") if module else []
        if not level and (not parts or parts[0] in KNOWN_BY_FACTS):
            return None
        starts = self._package_start(folder, level) if level else self._starts(folder, parts[0])
        for start in starts:
            for candidate in _files_of(start, parts):
                if self._is_inside(candidate):
                    source = self.read(candidate)
                    if source is not None:
                        return source
                    self.missed.setdefault(candidate, set()).add(folder)
        return None

    def _package_start(self, folder: str, level: int) -> Iterator[str]:
        """Where a relative import begins; inside torch nowhere."""
        if os.path.basename(top_of_package(folder)) in KNOWN_BY_FACTS:
            return
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        yield folder

    def _starts(self, folder: str, first: str) -> Iterator[str]:
        """Where an absolute import may begin; among installed packages only in the importing one."""
        package = top_of_package(folder)
        parent = os.path.dirname(package) if package else folder
        if os.path.basename(parent) in INSTALLED:
            if os.path.basename(package) == first:
                yield parent
            return
        if not package or first not in sys.stdlib_module_names:
            # Inside a package `import logging` is never the module beside it.
            yield folder
        if parent != folder:
            yield parent
        yield self.root
        yield os.path.join(self.root, "src")

    def _is_inside(self, path: str) -> bool:
        return path.startswith(self.root.rstrip(os.sep) + os.sep)


def project_root(path: str) -> str:
    """The folder that holds the project of a file or folder: the nearest with a mark of one, else its own folder.

    An installed package is a project of its own, whatever lies around the environment it is installed in.
    """
    folder = path if disk.is_folder(path) else os.path.dirname(path)
    start = folder
    while True:
        if os.path.basename(folder) in INSTALLED or any(
            disk.exists(os.path.join(folder, mark)) for mark in ROOT_MARKS
        ):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    package = top_of_package(start)
    return os.path.dirname(package) if package else start


def top_of_package(folder: str) -> str:
    """The outermost package folder that a file in `folder` belongs to; empty when it belongs to none."""
    top = ""
    while disk.is_file(os.path.join(folder, "__init__.py")):
        top = folder
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    return top


def _files_of(start: str, parts: list[str]) -> Iterator[str]:
    """The files a module may live in, the package first as Python prefers it."""
    base = os.path.join(start, *parts)
    yield os.path.join(base, "__init__.py")
    if parts:
        yield base + ".py"
