"""The questions that a check asks the disk, noted on demand with their answers.

A run that noted all its questions can be repeated without running: while the disk gives the same answers, the same comes
of them.  What lies *at* a path is told by what git tells files by (number, size, times of its content and of its record);
what is *in* a folder by the names that may matter to a check, or by all its *names*.
"""

from __future__ import annotations

import errno
import os
import stat
import time

SUFFIXES = (".py", ".pyw", ".ipynb")
IGNORE_FILE = ".gitignore"
USUAL_FOLDERS = frozenset(
    {
        ".bzr", ".direnv", ".eggs", ".git", ".git-rewrite", ".gradsight_cache", ".hg", ".ipynb_checkpoints",
        ".mypy_cache", ".nox", ".pants.d", ".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv",
        ".vscode", "__pycache__", "__pypackages__", "_build", "buck-out", "build", "dist", "node_modules",
        "site-packages", "venv",
    }
)  # fmt: skip

AT, IN, NAMES = "at", "in", "names"
Question = tuple[str, str]
NOTHING = "-"
FOLDER = "/"
MILLISECOND = 1_000_000
MOST_BYTES = 1_000_000
"""Of a settings or ignore file; nobody writes a larger one."""
FINE_TICK = 50 * MILLISECOND
COARSE_TICK = 2_100 * MILLISECOND


class DiskWatch:
    """Notes every question asked while it is open.

    `is_settled`: no file is so young that it could change once more and show the same times.
    """

    def __init__(self) -> None:
        self.answers: dict[Question, str] = {}
        self.is_settled = True
        self.started = time.time_ns()

    def __enter__(self) -> DiskWatch:
        _open_watches.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _open_watches.remove(self)

    def note(self, kind: str, path: str) -> None:
        """Note a question before it is asked: what changes in between is then a change."""
        if (kind, path) not in self.answers:
            self.answers[kind, path] = answer(kind, path)
            self.is_settled = self.is_settled and (kind != AT or _is_settled(path, self.started))


_open_watches: list[DiskWatch] = []


def answer(kind: str, path: str) -> str:
    """What the disk says now."""
    if kind == IN:
        return FOLDER.join(entry.name for entry in _entries(path))
    if kind == NAMES:
        return FOLDER.join(_names(path))
    status = _status(path)
    if status is None:
        return NOTHING
    if stat.S_ISDIR(status.st_mode):
        return FOLDER
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def note(path: str) -> None:
    """Whoever is about to read a file, or to ask for it, says so."""
    for watch in _open_watches:
        watch.note(AT, path)


def exists(path: str) -> bool:
    """Whether there is anything at a path."""
    note(path)
    return os.path.exists(path)


def is_file(path: str) -> bool:
    """Whether there is a file at a path."""
    note(path)
    return os.path.isfile(path)


def is_folder(path: str) -> bool:
    """Whether there is a folder at a path."""
    note(path)
    return os.path.isdir(path)


class TooLarge(OSError):
    """A file has more bytes than are wanted; `beginning` holds those that were read."""

    beginning = b""


def read(path: str, most: int = MOST_BYTES) -> bytes:
    """The content of a file that a check depends on.  Raises OSError."""
    note(path)
    return content(path, most)


def content(path: str, most: int) -> bytes:
    """The content of a file.  Raises OSError, also for what would never end (a device, a pipe) or is too large."""
    if "\0" in path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    _require_file(os.stat(path))
    # What was a file a moment ago may be a pipe now: to open one must not wait for its writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        _require_file(os.fstat(file.fileno()))
        data = file.read(most + 1)
    if len(data) > most:
        problem = TooLarge(errno.EFBIG, f"is larger than {most / 1e6:g} MB")
        problem.beginning = data
        raise problem
    return data


def _require_file(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file")


def entries(folder: str) -> list[os.DirEntry[str]]:
    """What may be worth checking in a folder, by name: Python files, notebooks, an ignore file, and folders to look into."""
    for watch in _open_watches:
        watch.note(IN, folder)
    return _entries(folder)


def files_below(folder: str, suffixes: tuple[str, ...]) -> list[str]:
    """All files with these suffixes, at any depth, in a fixed order; what Python compiled is left out."""
    found: list[str] = []
    for name in _names(folder):
        path = os.path.join(folder, name)
        if name.endswith(suffixes):
            found.append(path)
        elif name != "__pycache__" and os.path.isdir(path):
            found += files_below(path, suffixes)
    return found


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            found = [entry for entry in listing if _may_matter(entry)]
    except (OSError, ValueError):
        return []
    return sorted(found, key=lambda entry: entry.name)


def _may_matter(entry: os.DirEntry[str]) -> bool:
    if entry.is_dir(follow_symlinks=False):
        return entry.name not in USUAL_FOLDERS
    return entry.name.endswith(SUFFIXES) or entry.name == IGNORE_FILE


def _is_settled(path: str, now: int) -> bool:
    """Whether a change from now on must show: times are whole ticks of the file system, some of which are seconds long."""
    status = _status(path)
    if status is None or stat.S_ISDIR(status.st_mode):
        return True
    tick = FINE_TICK if status.st_mtime_ns % MILLISECOND else COARSE_TICK
    return max(status.st_mtime_ns, status.st_ctime_ns) < now - tick


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None
