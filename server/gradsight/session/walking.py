"""Which files of a folder are worth checking: Python and notebooks, without what git ignores and what tools leave behind."""

from __future__ import annotations

import os
from collections.abc import Iterator

from gradsight.model.settings import Settings
from gradsight.session import disk
from gradsight.session.gitignore import IgnoreFile, ignore_file, is_ignored, read_ignore_file


def walk(folder: str, root: str, exclude: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
    """The files to check below a folder, with their sizes, in a fixed order.

    `exclude` holds patterns in the language of .gitignore, which speak of `root`.  The named folder itself is always
    walked: a pattern that would leave it out is not asked about what is inside.
    """
    ignores = [*_ignores_above(folder), ignore_file(root, exclude)]
    if any(is_ignored(ignores, part, True) for part in _ancestry(folder)):
        ignores = [ignore_file(root, exclude)]
    yield from _walk(folder, [file for file in ignores if file.patterns])


def is_excluded(path: str, root: str, exclude: tuple[str, ...]) -> bool:
    """Whether the user's own patterns leave a file out, by its name or by that of a folder around it."""
    if not exclude or not path.startswith(root):
        return False
    patterns = [ignore_file(root, exclude)]
    folders = [part for part in _ancestry(os.path.dirname(path)) if len(part) > len(root)]
    return is_ignored(patterns, path, False) or any(is_ignored(patterns, part, True) for part in folders)


def is_ignored_in(path: str, code: str, root: str, settings: Settings) -> bool:
    """Whether the settings of a project ignore a rule in a file."""
    return any(
        any(code.startswith(prefix) for prefix in prefixes) and is_excluded(path, root, (pattern,))
        for pattern, prefixes in settings.per_file_ignores.items()
    )


def _walk(folder: str, ignores: list[IgnoreFile]) -> Iterator[tuple[str, int]]:
    entries = disk.entries(folder)
    if any(entry.name == disk.IGNORE_FILE for entry in entries):
        own = read_ignore_file(os.path.join(folder, disk.IGNORE_FILE), folder)
        ignores = [*ignores, own] if own is not None else ignores
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_folder:
            if disk.exists(os.path.join(entry.path, "pyvenv.cfg")):
                continue
        elif entry.name == disk.IGNORE_FILE:
            continue
        if ignores and is_ignored(ignores, entry.path, is_folder):
            continue
        if is_folder:
            yield from _walk(entry.path, ignores)
        else:
            try:
                disk.note(entry.path)
                if entry.is_file():
                    yield entry.path, entry.stat().st_size
            except OSError:
                continue


def _ignores_above(folder: str) -> list[IgnoreFile]:
    """The ignore files of the repository that speak of a folder, from the outermost to the folder above it."""
    found: list[IgnoreFile] = []
    here = folder
    while True:
        is_top = disk.exists(os.path.join(here, ".git"))
        if here != folder:
            own = read_ignore_file(os.path.join(here, ".gitignore"), here)
            if own is not None:
                found.insert(0, own)
        if is_top:
            private = read_ignore_file(os.path.join(here, ".git", "info", "exclude"), here)
            return [private, *found] if private is not None else found
        above = os.path.dirname(here)
        if above == here:
            return []
        here = above


def _ancestry(folder: str) -> list[str]:
    """A folder and all that hold it, the innermost first."""
    chain = [folder]
    while os.path.dirname(chain[-1]) != chain[-1]:
        chain.append(os.path.dirname(chain[-1]))
    return chain
