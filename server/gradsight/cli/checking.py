"""One file checked: read, skipped at once when torch is not in it, analysed in its workspace.

A `Checker` is handed to other processes, so it holds plain data; what it reads and remembers stays in its process.
The engine is imported with the first file that needs it: a run without one ends before the import would.
"""

from __future__ import annotations

import gc
import logging
import os
from dataclasses import dataclass, field

from gradsight.model.finding import Finding
from gradsight.model.report import SyntaxProblem
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.notebooks import read_notebook
from gradsight.session.reading import Unreadable, decode, read_bytes, reader
from gradsight.session.workspace import WorkspaceFinder

Question = tuple[str, int, str]
TORCH, BACKWARD = b"torch", b".backward("
"""One of these is in every file that there is anything to say about."""
SYNTAX_CODE = "GS000"
GARBAGE_WORTH_COLLECTING = 1_500_000
"""Characters of source whose analysis leaves garbage behind."""


@dataclass(frozen=True, slots=True)
class Task:
    """A file to check: its absolute path, the project it belongs to, and how much there is to read.

    `is_named`: the user named the file itself, and is told when it cannot be one to check.
    """

    path: str
    root: str
    settings: Settings
    size: int = 0
    text: str | None = None
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one file.

    `findings` may lie in files that this one imports.  `unreadable` says why there was nothing to analyse, `fault` is the
    trace of a failure of ours; what was found before it stands.
    """

    path: str
    findings: tuple[Finding, ...] = ()
    unused_suppressions: tuple[Finding, ...] = ()
    unreadable: str = ""
    fault: str = ""
    is_skipped: bool = False
    imports: tuple[Question, ...] = ()
    """What was asked about imports on the way, by whom."""


@dataclass(slots=True)
class Noting:
    """A finder that notes what it is asked."""

    finder: WorkspaceFinder
    asked: dict[Question, None] = field(default_factory=dict)

    def __call__(self, module: str, level: int, importing_path: str) -> Source | None:
        self.asked[module, level, importing_path] = None
        return self.finder(module, level, importing_path)


@dataclass(frozen=True)
class Checker:
    """Checks the tasks by their number."""

    tasks: tuple[Task, ...]
    finders: dict[str, WorkspaceFinder] = field(default_factory=dict)
    uncollected: list[int] = field(default_factory=lambda: [0])

    def __call__(self, number: int) -> Result:
        task = self.tasks[number]
        with Faults() as faults:
            result = check_file(task, self._finder(task.root))
        self._collect(task.size)
        if not faults.traces:
            return result
        return Result(
            result.path, result.findings, result.unused_suppressions, fault="\n".join(faults.traces)
        )

    def _collect(self, size: int) -> None:
        """Where the collector rests, have it work once for many files: it costs by what lives, not by what is dead."""
        if not gc.isenabled():
            self.uncollected[0] += size
            if self.uncollected[0] > GARBAGE_WORTH_COLLECTING:
                self.uncollected[0] = 0
                gc.collect()

    def _finder(self, root: str) -> WorkspaceFinder:
        if root not in self.finders:
            self.finders[root] = WorkspaceFinder(root, reader())
        return self.finders[root]


def check_file(task: Task, finder: WorkspaceFinder) -> Result:
    """Everything there is to say about one file."""
    source = read_task(task)
    if source is None:
        return Result(task.path, is_skipped=True)
    if isinstance(source, Unreadable):
        return Result(task.path, unreadable=source.reason)
    from gradsight.analysis import analyze

    noting = Noting(finder)
    report = analyze(source, task.settings, noting)
    broken = tuple(_as_finding(task.path, problem) for problem in report.syntax_problems)
    return Result(
        task.path, broken + report.findings, report.unused_suppressions, imports=tuple(noting.asked)
    )


def read_task(task: Task) -> Source | Unreadable | None:
    """The source of a task; None when it has nothing to do with torch."""
    if task.text is None:
        data = read_bytes(task.path)
        if isinstance(data, Unreadable):
            return data
        if TORCH not in data and BACKWARD not in data:
            return Unreadable("is not a text file") if task.is_named and b"\0" in data else None
        text = decode(data)
    else:
        text = task.text
    if isinstance(text, str) and task.path.endswith(".ipynb"):
        notebook = read_notebook(task.path, text)
        return notebook if isinstance(notebook, Unreadable) else notebook.source
    return Source(task.path, text) if isinstance(text, str) else text


def _as_finding(path: str, problem: SyntaxProblem) -> Finding:
    """Text that does not parse is told, not judged: it may be written for a newer Python than this one."""
    return Finding(
        SYNTAX_CODE,
        "syntax-error",
        f"does not parse: {problem.message}",
        "info",
        "certain",
        path,
        problem.span,
    )


class Faults(logging.Handler):
    """Gathers the traces that the core logs when it fails, while a file is checked."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.traces: list[str] = []
        self.log = logging.getLogger("gradsight")

    def emit(self, record: logging.LogRecord) -> None:
        self.traces.append(logging.Formatter().format(record))

    def __enter__(self) -> Faults:
        self.was_propagating = self.log.propagate
        self.log.propagate = False
        self.log.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.log.removeHandler(self)
        self.log.propagate = self.was_propagating


def shown_path(path: str) -> str:
    """A path as a person reads it: relative when it lies below the working folder."""
    here = os.getcwd()
    return os.path.relpath(path, here) if path.startswith(here.rstrip(os.sep) + os.sep) else path
