"""Results of earlier checks, kept by content: what did not change is not analysed again.

An entry holds for one text of one file under one setting, together with every import that the analysis followed and the
text it found there, or found missing; a text that has changed since may still be the same in all that was used of it.  It is plain JSON with a seal; anything that cannot be read counts as absent, so
the folder can be deleted at any time, and an engine that changed in any way starts with an empty one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradsight
from gradsight.cli import kept_folder
from gradsight.cli.checking import Question, Result, Task, read_starting, read_task
from gradsight.cli.kept_folder import CACHE_FOLDER, CACHE_VARIABLE
from gradsight.cli.replay import ENGINE_SUFFIXES
from gradsight.cli.shell import complain
from gradsight.model.finding import Finding, Related
from gradsight.model.report import Coverage, Gap, UsedNames
from gradsight.model.settings import Settings
from gradsight.model.source import Source, Span
from gradsight.ops.cache import facts_mark
from gradsight.session import disk
from gradsight.session.reading import reader
from gradsight.session.shown_paths import shown_path
from gradsight.session.workspace import ROOT_MARKS, WorkspaceFinder

if TYPE_CHECKING:
    from gradsight.interp.used_names import Outlines

FILE = "check.json"
Check = Callable[[list[Task]], list[Result]]
Entry = dict[str, Any]


def check_with_cache(tasks: list[Task], check: Check) -> list[Result]:
    """The result of every task in order; only those that nothing is known about are checked."""
    # Each file is read once: what is kept of a whole project takes long to read.
    sizes = {task.root: task.settings.most_bytes for task in reversed(tasks)}
    kept = {root: KeptResults(root, most_bytes) for root, most_bytes in sizes.items()}
    results: dict[int, Result] = {}
    missing = []
    for number, task in enumerate(tasks):
        known = kept[task.root].find(task)
        if known is None:
            missing.append(number)
        else:
            results[number] = known
    fresh = check([tasks[number] for number in missing]) if missing else []
    for number, result in zip(missing, fresh):
        results[number] = result
        kept[tasks[number].root].keep(tasks[number], result)
    for each in kept.values():
        each.save()
    return [results[number] for number in range(len(tasks))]


@dataclass
class KeptResults:
    """What is known about the files of one project."""

    root: str
    most_bytes: int
    entries: dict[str, Entry] = field(default_factory=dict)
    is_changed: bool = False

    def __post_init__(self) -> None:
        folder = cache_folder(self.root)
        reason = kept_folder.refusal(folder) if folder is not None else ""
        if folder is not None and reason:
            complain(f"{shown_path(folder)} {reason}: no results are kept there")
            folder = None
        self.path = os.path.join(folder, FILE) if folder is not None else None
        self.imports = ImportAnswers(self.root, self.most_bytes)
        if self.path is not None:
            self.entries = read_entries(self.path)

    def find(self, task: Task) -> Result | None:
        """The kept result of a task, if everything that it rests on is as it was."""
        entry = self.entries.get(task.path)
        if task.text is not None or not self.entries:
            return None
        try:
            source = read_task(task) or read_starting(task, self.imports.finder)
            if source is None:
                # It has nothing to do with torch, and nothing is kept of it: to look once is enough.
                return Result(task.path, is_skipped=True)
            if entry is None:
                return None
            if not isinstance(source, Source) or entry["text"] != mark_of(source.text):
                return None
            if entry["settings"] != settings_mark(task.settings):
                return None
            if not self.imports.hold(entry["imports"], entry["used"]):
                return None
            if self.imports.has_changed(entry["imports"]):
                # What it used of them is the same: the next check need not find that out again.
                self.entries[task.path] = entry = self.imports.renewed(entry)
                self.is_changed = True
            findings = tuple(_finding(each) for each in entry["findings"])
            unused = tuple(_finding(each) for each in entry["unused"])
            gaps = tuple(Gap(*each) for each in entry["gaps"])
            coverage = Coverage(*entry["coverage"]) if entry["coverage"] is not None else None
            return Result(task.path, findings, unused, gaps=gaps, coverage=coverage)
        except (KeyError, TypeError, ValueError, IndexError):
            return None

    def keep(self, task: Task, result: Result) -> None:
        """Remember a result; one that came of a failure, or has nothing to do with torch, is not worth it."""
        is_faulty = result.fault or any(gap.kind == "internal" for gap in result.gaps)
        is_worth = not (is_faulty or result.unreadable or result.is_skipped) and task.text is None
        if self.path is None or not is_worth:
            return
        source = read_task(task) or read_starting(task, self.imports.finder)
        if not isinstance(source, Source):
            return
        self.is_changed = True
        self.entries[task.path] = {
            "text": mark_of(source.text),
            "settings": settings_mark(task.settings),
            "imports": self.imports.answered(result.imports),
            "used": list(map(row_of, result.used)),
            "findings": [_plain(each) for each in result.findings],
            "unused": [_plain(each) for each in result.unused_suppressions],
            "gaps": [[gap.reason, gap.line, gap.count, gap.kind, gap.path] for gap in result.gaps],
            "coverage": [result.coverage.functions, result.coverage.not_analysed]
            if result.coverage is not None
            else None,
        }

    def save(self) -> None:
        """Write what is known, without files that are gone; a folder that cannot be written is no problem."""
        if self.is_changed and self.path is not None:
            write_entries(self.path, self.entries)


class ImportAnswers:
    """Where the imports of a project lead now."""

    def __init__(self, root: str, most_bytes: int) -> None:
        self.finder = WorkspaceFinder(root, reader(most_bytes))
        self.marks: dict[str, str] = {}
        self.outlines: Outlines | None = None
        self.known: dict[UsedNames, UsedNames | None] = {}
        """What was used of a module as it is now, where its text has changed."""

    def hold(self, imports: list[list[Any]], used: Iterable[list[Any]] = ()) -> bool:
        """Whether questions that were asked have the answers that were kept with them, as far as these were `used`."""
        for module, level, importer, path, mark in imports:
            now = self.answer((module, level, importer))
            if now == (path, mark):
                continue
            if path is None or now[0] != path:
                return False
            known = [_used(row) for row in used if row[0] == path]
            source = self.finder(module, level, importer)
            if not known or not all(self.now(one, source) for one in known):
                return False
        return True

    def has_changed(self, imports: list[list[Any]]) -> bool:
        """Whether an import leads to another text."""
        return any(mark != self.marks.get(path) for *_, path, mark in imports if path is not None)

    def now(self, used: UsedNames, source: Source | None) -> UsedNames | None:
        """The same use of a module as it is now; None where the module is not the same to whoever used this of it."""
        from gradsight.interp.used_names import Outlines

        if self.outlines is None:
            self.outlines = Outlines()
        if used not in self.known:
            self.known[used] = self.outlines.now(used, source)
        return self.known[used]

    def renewed(self, entry: Entry) -> Entry:
        """What is kept of a file, with the modules that it imports as they are now: lines in them may have moved."""
        from gradsight.interp.used_names import moved

        uses = [_used(row) for row in entry["used"]]
        moves: dict[str, tuple[UsedNames, UsedNames]] = {}
        for used in uses:
            now = self.known.get(used)
            if now is not None and now.starts:
                moves.setdefault(used.path, (used, now))

        def line_now(path: str, line: int) -> int:
            return moved(line, *moves[path]) if path in moves else line

        def finding_now(finding: Finding) -> Finding:
            related = tuple(
                replace(step, span=step.span.moved(line_now(step.path, step.span.line) - step.span.line))
                for step in finding.related
            )
            lines = line_now(finding.path, finding.span.line) - finding.span.line
            return replace(finding, span=finding.span.moved(lines), related=related)

        return {
            **entry,
            "imports": self.answered((one[0], one[1], one[2]) for one in entry["imports"]),
            "used": [row_of(self.known.get(used) or used) for used in uses],
            "findings": [_plain(finding_now(_finding(each))) for each in entry["findings"]],
            "gaps": [
                [reason, line_now(path, line), count, kind, path]
                for reason, line, count, kind, path in entry["gaps"]
            ],
        }

    def answered(self, questions: Iterable[Question]) -> list[list[Any]]:
        """Questions with their answers, to be kept."""
        return [[*question, *self.answer(question)] for question in questions]

    def answer(self, question: Question) -> tuple[str | None, str | None]:
        """Where an import leads now, and the text there."""
        source = self.finder(*question)
        if source is None:
            return None, None
        if source.path not in self.marks:
            self.marks[source.path] = mark_of(source.text)
        return source.path, self.marks[source.path]


def row_of(used: UsedNames) -> list[Any]:
    """What was used of a module, to be kept."""
    return [used.path, list(used.names), used.mark, used.text, list(used.starts)]


def _used(row: list[Any]) -> UsedNames:
    path, names, mark, text, starts = row
    return UsedNames(path, tuple(names), mark, text, tuple(starts))


def mark_of(text: str) -> str:
    """Equal for equal texts."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_engine_mark: list[str] = []


def engine_mark() -> str:
    """Changes with the engine: its version, its files, and the Python whose grammar it reads with."""
    if not _engine_mark:
        package = Path(gradsight.__file__).parent
        told = [gradsight.__version__, *map(str, sys.version_info[:3])]
        for path in disk.files_below(str(package), ENGINE_SUFFIXES):
            status = os.stat(path)
            told.append(f"{path}:{status.st_size}:{status.st_mtime_ns}")
        _engine_mark.append(mark_of("\n".join(told)))
    return _engine_mark[0]


def cache_folder(root: str) -> str | None:
    """Where the results of a project are kept: in the project, or where the variable says; nowhere outside of projects."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return os.path.join(chosen, mark_of(root))
    if not any(disk.exists(os.path.join(root, mark)) for mark in ROOT_MARKS):
        return None
    return os.path.join(root, CACHE_FOLDER)


def read_entries(path: str) -> dict[str, Entry]:
    """What a file of this engine keeps, by path of the file that it is about."""
    try:
        table = json.loads(kept_folder.read_sealed(path) or b"")
        if table["engine"] != engine_mark():
            return {}
        entries = table["entries"]
        return entries if isinstance(entries, dict) else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def write_entries(path: str, entries: dict[str, Entry]) -> None:
    """Keep what is known, without files that are gone; a folder that cannot be written is no problem."""
    present = {about: entry for about, entry in entries.items() if os.path.exists(about)}
    text = json.dumps({"engine": engine_mark(), "entries": present}, separators=(",", ":"))
    with contextlib.suppress(OSError):
        kept_folder.prepare(os.path.dirname(path))
        kept_folder.write_sealed(path, text.encode())


def settings_mark(settings: Settings) -> str:
    """Changes with every setting that a result depends on."""
    told = [
        settings.select, settings.ignore, sorted(settings.severity.items()), settings.hints, settings.max_megabytes,
        settings.models, facts_mark(settings.facts),
    ]  # fmt: skip
    return mark_of(repr(told))


def _plain(finding: Finding) -> Entry:
    return {
        "about": [
            finding.code,
            finding.name,
            finding.message,
            finding.severity,
            finding.certainty,
            finding.path,
        ],
        "span": _numbers(finding.span),
        "related": [[step.role, step.message, step.path, *_numbers(step.span)] for step in finding.related],
        "assumption": finding.assumption,
        "data": dict(finding.data),
    }


def _finding(entry: Entry) -> Finding:
    code, name, message, severity, certainty, path = entry["about"]
    related = tuple(Related(role, text, where, Span(*span)) for role, text, where, *span in entry["related"])
    return Finding(
        code, name, message, severity, certainty, path, Span(*entry["span"]), related, entry["assumption"],
        entry["data"],
    )  # fmt: skip


def _numbers(span: Span) -> list[int]:
    return [span.line, span.column, span.end_line, span.end_column]
