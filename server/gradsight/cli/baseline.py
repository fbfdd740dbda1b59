"""`--baseline FILE`: findings that were there before somebody looked; only what comes to them makes a run fail.

An entry is known by its rule, its file and the words of its line, so that it survives when lines move.  Two equal lines
with the same finding need two entries.  Paths are relative to the folder of the file.
"""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import PurePath

from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import MergedResults
from gradsight.cli.writing import usual_mode, write_whole
from gradsight.model.finding import Finding
from gradsight.session import disk

VERSION = 1
MOST_BYTES = 100_000_000
Entry = tuple[str, str, str]


class BadBaseline(Exception):
    """The file cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What is new, how many findings were known, and how many entries of the file nothing matches any more."""

    fresh: MergedResults
    known: int
    stale: int


def compare(gathered: MergedResults, documents: Documents, path: str, checked: Collection[str]) -> Compared:
    """The findings that a baseline does not hold; `checked` are the files that were looked at."""
    left = Counter(read(path))
    fresh = []
    for finding in gathered.findings:
        entry = entry_of(finding, documents, path)
        if left[entry] > 0:
            left[entry] -= 1
        else:
            fresh.append(finding)
    known = len(gathered.findings) - len(fresh)
    names = {_relative(each, path) for each in checked}
    stale = sum(count for (file, _, _), count in left.items() if file in names)
    return Compared(replace(gathered, findings=tuple(fresh)), known, stale)


def write(findings: Iterable[Finding], documents: Documents, path: str) -> int:
    """Take the present findings as known; how many there are."""
    entries = sorted(entry_of(finding, documents, path) for finding in findings)
    table = {
        "version": VERSION,
        "findings": [{"code": code, "file": file, "line": line} for file, code, line in entries],
    }
    try:
        content = (json.dumps(table, indent=1, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:
        # A file name with bytes that are no text has a form in JSON, and none in UTF-8.
        content = (json.dumps(table, indent=1) + "\n").encode()
    place = os.path.realpath(path)
    folder = os.path.realpath(os.path.dirname(path) or os.curdir)
    try:
        if os.path.commonpath([folder, place]) != folder:
            raise OSError(errno.EINVAL, "it is a link that leads out of its folder")
        if os.path.exists(place) and not os.path.isfile(place):
            raise OSError(errno.EINVAL, "not a regular file")
        write_whole(place, content, usual_mode())
    except OSError as problem:
        raise BadBaseline(f"{path} cannot be written: {(problem.strerror or 'unknown').lower()}") from None
    return len(entries)


def read(path: str) -> list[Entry]:
    """The entries of a baseline."""
    try:
        table = json.loads(disk.read(path, MOST_BYTES))
    except FileNotFoundError:
        raise BadBaseline(f"no such file: {path} (make it with --write-baseline)") from None
    except (OSError, ValueError, RecursionError) as problem:
        raise BadBaseline(f"{path} is not a baseline: {problem}") from None
    if not isinstance(table, dict) or table.get("version") != VERSION:
        raise BadBaseline(f"{path} is not a baseline of this version: rewrite it with --write-baseline")
    try:
        return [(str(each["file"]), str(each["code"]), str(each["line"])) for each in table["findings"]]
    except (KeyError, TypeError):
        raise BadBaseline(f"{path} is not a baseline: rewrite it with --write-baseline") from None


def entry_of(finding: Finding, documents: Documents, path: str) -> Entry:
    """What a finding is known by."""
    words = " ".join(documents.line(finding.path, finding.span.line).split())
    return _relative(finding.path, path), finding.code, words


def _relative(file: str, path: str) -> str:
    """A file as the baseline at `path` names it."""
    folder = os.path.dirname(os.path.abspath(path))
    return PurePath(os.path.relpath(file, folder) if os.path.isabs(file) else file).as_posix()
