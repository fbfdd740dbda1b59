"""One program analysed, and everything that was found in it as plain data.

Only what every version of the engine offers is asked for: `analyze`, `Source`, and the finder that `gradsight check` uses.
It is imported with the first program, so that another tree's engine can be put first on the path.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradsight_dev.compare_reports.corpora import Item

if TYPE_CHECKING:
    from gradsight.model.finding import Finding
    from gradsight.model.source import Source, Span

    Finder = Callable[[str, int, str], Source | None]

Record = dict[str, Any]
"""`name`, `text` (a hash), `findings`, `failed` (a trace, or empty) and `seconds` of one program."""


class Recorder:
    """Analyses programs one after the other; what was read of a workspace is remembered."""

    def __init__(self) -> None:
        self.finders: dict[str, Finder] = {}
        self.projects: dict[Path, str] = {}

    def __call__(self, item: Item) -> Record:
        """The record of one program.  Whatever goes wrong is part of it."""
        began = time.process_time()
        record: Record = {"name": item.name, "text": "", "findings": [], "failed": ""}
        with LoggedFailures() as failures:
            try:
                self._fill(record, item)
            except Exception:
                failures.traces.append(traceback.format_exc())
        record["failed"] = "\n".join([record["failed"], *failures.traces]).strip()
        record["seconds"] = round(time.process_time() - began, 3)
        return record

    def _fill(self, record: Record, item: Item) -> None:
        from gradsight.analysis import analyze
        from gradsight.model.source import Source
        from gradsight.session.reading import decode

        text, path, finder = item.text, item.name, None
        if item.file is not None:
            data = item.file.read_bytes()
            decoded = decode(data)
            if not isinstance(decoded, str):
                record["failed"] = decoded.reason
                return
            text, path, finder = decoded, str(item.file), self._finder(item.file)
        record["text"] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        report = analyze(Source(path, text), None, finder)
        named = _naming(item)
        record["findings"] = [_finding(finding, named) for finding in report.findings]
        record["findings"] += [_finding(finding, named) for finding in report.unused_suppressions]
        record["syntax"] = [[problem.message, _span(problem.span)] for problem in report.syntax_problems]

    def _finder(self, file: Path) -> Finder:
        from gradsight.session.reading import reader
        from gradsight.session.workspace import WorkspaceFinder, project_root

        if file.parent not in self.projects:
            self.projects[file.parent] = project_root(str(file))
        root = self.projects[file.parent]
        if root not in self.finders:
            self.finders[root] = WorkspaceFinder(root, reader())
        return self.finders[root]


class LoggedFailures(logging.Handler):
    """Gathers what the core logs when it fails: it reports nothing then, and raises nothing."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.traces: list[str] = []
        self.log = logging.getLogger("gradsight")

    def emit(self, record: logging.LogRecord) -> None:
        self.traces.append(logging.Formatter().format(record))

    def __enter__(self) -> LoggedFailures:
        self.was_propagating = self.log.propagate
        self.log.propagate = False
        self.log.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.log.removeHandler(self)
        self.log.propagate = self.was_propagating


def _naming(item: Item) -> Callable[[str], str]:
    """Paths as snapshots hold them: the same wherever the corpus lies."""
    if item.base is None:
        return lambda path: path
    base = str(item.base) + os.sep
    return lambda path: path[len(base) :] if path.startswith(base) else path


def _finding(finding: Finding, named: Callable[[str], str]) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "certainty": finding.certainty,
        "path": named(finding.path),
        "span": _span(finding.span),
        "message": finding.message,
        "assumption": finding.assumption,
        "related": [[step.role, step.message, named(step.path), step.span.line] for step in finding.related],
    }


def _span(span: Span) -> list[int]:
    return [span.line, span.column, span.end_line, span.end_column]
