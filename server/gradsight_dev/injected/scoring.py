"""Scores edits: what the engine says of the edited file that it did not say of the file as it was.

A bug is *found* when a new warning or error with a code of its kind stands on a line that the edit touched or accepts,
*elsewhere* when there is a new alarm, but on another line or with another code.  Any new alarm of a safe edit is false.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gradsight_dev.injected.catalogue import Edit, Target
from gradsight_dev.injected.edits import Misplaced, Row, edited, rows_of
from gradsight_dev.injected.kinds import CODES

if TYPE_CHECKING:
    from gradsight.analysis import Analyser
    from gradsight.model.finding import Finding
    from gradsight.model.source import Source

FOUND, ELSEWHERE, MISSED = "found", "elsewhere", "missed"
SILENT, ALARM = "silent", "alarm"


@dataclass(frozen=True, slots=True)
class Alarm:
    """A warning or an error: its code and message, its place, and the line of the original (None on a new line)."""

    code: str
    path: str
    lines: tuple[int, ...]
    original: int | None
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one edit."""

    target: Target
    edit: Edit
    result: str
    alarms: tuple[Alarm, ...]


def score(target: Target, root: Path) -> Iterator[Outcome]:
    """The outcome of every edit of one file.  Raises Misplaced if the file is another one."""
    file = root / target.path
    data = file.read_bytes()
    if hashlib.sha256(data).hexdigest() != target.sha256:
        raise Misplaced(f"{target.path} is another version")
    text = data.decode()
    before = {known(alarm) for alarm in alarms(target, root, rows_of(text))}
    for edit in target.edits:
        rows = edited(text, edit.changes)
        new = tuple(alarm for alarm in alarms(target, root, rows) if known(alarm) not in before)
        yield Outcome(target, edit, result_of(target, edit, rows, new), new)


def alarms(target: Target, root: Path, rows: list[Row], analyser: Analyser | None = None) -> Iterator[Alarm]:
    """The alarms of the file with these rows, and of the files that it is analysed through."""
    from gradsight.analysis import analyze
    from gradsight.model.source import Source
    from gradsight.session.workspace import WorkspaceFinder

    file = str(root / target.path)
    read = _overlaid(file, "\n".join(row.text for row in rows))
    finder = WorkspaceFinder(str(root), read)
    if analyser is not None:
        analyser.forget(file)
    said: set[tuple[str, str, int, str]] = set()
    for path in (file, *(str(root / one) for one in target.through)):
        source = read(path)
        assert isinstance(source, Source), path
        for finding in analyze(source, None, finder, analyser).findings:
            if finding.severity not in ("error", "warning"):
                continue
            key = (finding.code, finding.path, finding.span.line, finding.message)
            if key not in said:
                said.add(key)
                yield _alarm(finding, rows if finding.path == file else None)


def result_of(target: Target, edit: Edit, rows: list[Row], new: tuple[Alarm, ...]) -> str:
    """What became of an edit, by the alarms that are new with it."""
    if edit.verdict == "safe":
        return ALARM if new else SILENT
    right = {
        number
        for number, row in enumerate(rows, 1)
        if (row.is_touched and row.text.strip() not in ("", "pass")) or row.original in edit.also
    }
    codes = CODES[edit.kind]
    elsewhere = [(path, int(line)) for path, _, line in (place.rpartition(":") for place in edit.also_in)]
    for alarm in new:
        if alarm.code.startswith(codes) and (
            (alarm.path.endswith(target.path) and right & set(alarm.lines))
            or any(alarm.path.endswith("/" + path) and line in alarm.lines for path, line in elsewhere)
        ):
            return FOUND
    return ELSEWHERE if new else MISSED


def _alarm(finding: Finding, rows: list[Row] | None) -> Alarm:
    first, last = finding.span.line, max(finding.span.line, finding.span.end_line)
    original = rows[first - 1].original if rows is not None and first <= len(rows) else first
    return Alarm(finding.code, finding.path, tuple(range(first, last + 1)), original, finding.message)


def known(alarm: Alarm) -> tuple[str, str, int | None]:
    """What makes an alarm of the edited file the same as one of the original."""
    return alarm.code, alarm.path, alarm.original


def _overlaid(file: str, text: str) -> Callable[[str], Source | None]:
    """Reads files from disk, but this one as it is edited."""
    from gradsight.model.source import Source
    from gradsight.session.reading import reader

    read = reader()
    return lambda path: Source(file, text) if path == file else read(path)
