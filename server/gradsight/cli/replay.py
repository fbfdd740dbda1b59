"""The same check again, of a project in which nothing changed: what it said is said again, without looking at a file's text.

A run of the command is kept with every question that it asked the disk, those about the engine's own files included, and
is repeated only while all answers are the same.  Anything that is not as it was written counts as unknown, and the check
takes its usual way.
"""

from __future__ import annotations

import os
import sys

import gradsight
from gradsight import __version__
from gradsight.cli import kept_folder
from gradsight.cli.kept_folder import CACHE_FOLDER, CACHE_VARIABLE
from gradsight.cli.shell import CLEAN, FINDINGS, guarded, tolerate_narrow_terminals
from gradsight.ops.user_folder import cache_folder as user_folder
from gradsight.session import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

ENGINE_SUFFIXES = (".py", ".txt", ".json")
FORM = "gradsight run 2"
PREFIX = "run-"
MOST_RUNS = 8
# What these depend on is not a matter of files that were read, or they write something.
UNREPEATABLE = ("-", "--diff", "--no-cache", "--write-baseline", "--stdin-filename", "--help", "-h", "--fix", "--unsafe-fixes", "--watch", "--add-ignore", "--output-file", "-o", "--show-files", "--show-settings")  # fmt: skip
VARIABLES = ("GRADSIGHT_", "PYTHON", "LC_", "LANG", "TERM", "COLOR", "NO_COLOR", "FORCE_COLOR", "TTY_", "COLUMNS", "HOME", "XDG_CACHE_HOME", "VIRTUAL_ENV", "CONDA_PREFIX")  # fmt: skip


def is_repeatable(words: list[str]) -> bool:
    """Whether a call depends on nothing but the files that it reads."""
    return words[:1] == ["check"] and not any(word.split("=")[0] in UNREPEATABLE for word in words)


def answer(words: list[str]) -> int | None:
    """Say again what the same call said, and give its exit code; None when something is not as it was."""
    key = _key(words)
    try:
        kept = _read(_folders_above(), _name(key), key)
    except (OSError, ValueError, IndexError):
        return None
    if kept is None:
        return None
    code, said = kept

    def say() -> int:
        sys.stdout.write(said)
        return code

    return guarded(say)


def remember(words: list[str], run: Callable[[], int]) -> int:
    """Run a call, and keep it where it can be repeated."""
    tolerate_narrow_terminals()
    out, err = sys.stdout, sys.stderr
    said, complaints = _Heard(out), _Heard(err)
    with disk.DiskWatch() as watch:
        for path in disk.files_below(os.path.dirname(gradsight.__file__), ENGINE_SUFFIXES):
            disk.note(path)
        sys.stdout, sys.stderr = said, complaints
        try:
            code = run()
        finally:
            sys.stdout, sys.stderr = out, err
        # What wipes its line is progress, of which nothing stays.
        is_quiet = all(text.startswith("\r") for text in complaints.texts)
        if code in (CLEAN, FINDINGS) and is_quiet:
            _keep(words, code, "".join(said.texts), watch)
    return code


class _Heard:
    """A stream that remembers what was written to it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.texts: list[str] = []

    def write(self, text: str) -> int:
        self.texts.append(text)
        return self.stream.write(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)


def _keep(words: list[str], code: int, said: str, watch: disk.DiskWatch) -> None:
    from gradsight.cli.result_cache import cache_folder
    from gradsight.ops import cache as tables
    from gradsight.session.workspace import project_root

    folder = cache_folder(project_root(os.getcwd()))
    # Which of the refreshed tables holds depends on the torch that is installed: more than files tell.
    if folder is None or tables.has_tables() or not kept_folder.has_key():
        return
    watch.note(disk.NAMES, user_folder())
    if not watch.is_settled:
        return
    key = _key(words)
    facts = [part for (kind, path), answer in watch.answers.items() for part in (kind, path, answer)]
    text = "\0".join([FORM, key, str(code), str(len(watch.answers)), *facts, said])
    try:
        kept_folder.prepare(folder)
        kept_folder.write_sealed(os.path.join(folder, _name(key)), text.encode("utf-8", "surrogateescape"))
        _forget_oldest(folder)
    except (OSError, ValueError):
        return


def _forget_oldest(folder: str) -> None:
    with os.scandir(folder) as listing:
        runs = [entry for entry in listing if _is_run(entry.name) and entry.is_file(follow_symlinks=False)]
    runs.sort(key=lambda entry: entry.stat(follow_symlinks=False).st_mtime_ns)
    for entry in runs[:-MOST_RUNS]:
        os.unlink(entry.path)


def _is_run(name: str) -> bool:
    """Whether a file has a name that we give."""
    number = name.removeprefix(PREFIX)
    return number != name and len(number) in (8, 16) and not number.strip("0123456789abcdef")


def _read(folders: Iterator[str], name: str, key: str) -> tuple[int, str] | None:
    for folder in folders:
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            continue
        content = kept_folder.read_sealed(path) if not kept_folder.refusal(folder) else None
        if content is None:
            return None
        text = content.decode("utf-8", "surrogateescape")
        form, its_key, code, count = text.split("\0", 4)[:4]
        if form != FORM or its_key != key:
            return None
        parts = text.split("\0", 4 + 3 * int(count))
        facts, said = parts[4:-1], parts[-1]
        questions = zip(facts[::3], facts[1::3], facts[2::3])
        is_same = all(disk.answer(kind, path) == told for kind, path, told in questions)
        return (int(code), said) if is_same else None
    return None


def _folders_above() -> Iterator[str]:
    """Where runs from the working folder may have been kept, the nearest first; not above a folder of somebody else."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        yield from (entry.path for entry in os.scandir(chosen) if entry.is_dir(follow_symlinks=False))
        return
    folder = os.getcwd()
    while True:
        yield os.path.join(folder, CACHE_FOLDER)
        above = os.path.dirname(folder)
        if above == folder or not kept_folder.is_own(os.stat(above)):
            return
        folder = above


def _key(words: list[str]) -> str:
    """Everything that the output depends on besides files, in one line."""
    around = {
        name: os.environ[name]
        for name in sorted(os.environ)
        if name.startswith(VARIABLES) and name != kept_folder.KEY_VARIABLE
    }
    out = sys.stdout
    return repr([__version__, sys.version, os.getcwd(), out.encoding, out.isatty(), words, around])


def _name(key: str) -> str:
    return f"{PREFIX}{kept_folder.name_of(key)}"
