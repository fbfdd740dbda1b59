"""One file checked: read, skipped at once when torch is not in it, analysed in its workspace.

A `Checker` is handed to other processes, so it holds plain data; what it reads and remembers stays in its process.
The engine is imported with the first file that needs it: a run without one ends before the import would.
"""

from __future__ import annotations

import gc
import logging
import warnings
from _ast import PyCF_ONLY_AST
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gradsight.model.finding import Finding
from gradsight.model.fix import Fix
from gradsight.model.relevance import is_about_torch_in_bytes
from gradsight.model.report import Coverage, Gap, SyntaxProblem, UsedNames
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.notebooks import read_notebook
from gradsight.session.reading import Unreadable, decode, read_bytes, reader, too_large
from gradsight.session.starting_files import starts_torch
from gradsight.session.workspace import WorkspaceFinder

Question = tuple[str, int, str]
"""One of these is in every file that there is anything to say about."""
SYNTAX_CODE = "GS000"
YOUNG_WORTH_COLLECTING = 60_000
GARBAGE_WORTH_COLLECTING = 6_000_000
"""Characters of source whose analysis leaves garbage behind."""
LEFT_UNCOLLECTED = 3_000_000
"""What all processes of a run may leave behind together until the young is collected: two hundred megabytes."""
MOST_KNOWN = 20_000_000
"""Characters of imported modules that all processes of a run may know together: a gigabyte."""
LEAST_KNOWN = 3_000_000
"""What each of them may know in any case: less would be imported over and over."""


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
class TriedFix:
    """A finding, and the fix that is offered first for it, if there is one."""

    finding: Finding
    fix: Fix | None


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
    used: tuple[UsedNames, ...] = ()
    """What was used of the modules that it imports."""
    gaps: tuple[Gap, ...] = ()
    """What was not understood in the file."""
    coverage: Coverage | None = None
    fixes: tuple[TriedFix, ...] = ()
    """What came of trying to fix findings, as far as it was tried at once."""

    def find(self, finding: Finding) -> TriedFix | None:
        """What came of trying to fix a finding; None where that was not tried."""
        return next((each for each in self.fixes if each.finding == finding), None)


@dataclass(slots=True)
class Noting:
    """A finder that notes what it is asked."""

    finder: WorkspaceFinder
    asked: dict[Question, None] = field(default_factory=dict)

    def __call__(self, module: str, level: int, importing_path: str) -> Source | None:
        self.asked[module, level, importing_path] = None
        return self.finder(module, level, importing_path)


@dataclass
class FixWish:
    """Of which findings a fix is wanted together with the result: of some severities, up to so many in one process."""

    severities: tuple[str, ...]
    most: int | None = None
    seen: int = 0

    def among(self, findings: tuple[Finding, ...], path: str) -> list[Finding]:
        """Those of the findings in a file that are tried; none any more once there are so many that nobody waits for them."""
        wanted = [each for each in findings if each.path == path and each.severity in self.severities]
        self.seen += len(wanted)
        return wanted if self.most is None or self.seen <= self.most else []


@dataclass(frozen=True)
class Checker:
    """Checks the tasks by their number."""

    tasks: tuple[Task, ...]
    given: Mapping[str, str] = field(default_factory=dict)
    """Texts that count in place of what lies on disk, by path."""
    finders: dict[tuple[str, int], WorkspaceFinder] = field(default_factory=dict)
    modules: dict[tuple[str, int, str], Any] = field(default_factory=dict)
    """What is known of the modules of each project; it stays in its process, and ends with the run."""
    processes: int = 0
    """Between how many processes the files are spread, if that is known."""
    uncollected: list[int] = field(default_factory=lambda: [0, 0])
    """Bytes of text whose garbage is not collected yet: the young, and that which outlived a collection of the young."""
    fixed: FixWish = field(default_factory=lambda: FixWish(()))
    keeps: bool = False
    """Whether results are kept: then what they rest on is worked out with them."""

    def __call__(self, number: int) -> Result:
        task = self.tasks[number]
        with Faults() as faults:
            result = check_file(task, self.finder(task), self.modules, self.fixed, self.keeps)
        self._collect(task.size)
        self._begin_anew()
        return replace(result, fault="\n".join(faults.traces)) if faults.traces else result

    def _collect(self, size: int) -> None:
        """Where the collector rests, have it work once for some files.

        A whole collection costs by what lives, which is what modules are known by; one of the young costs by what was made since
        the last one, and nearly all of that is dead.
        """
        if gc.isenabled():
            return
        young = max(YOUNG_WORTH_COLLECTING, LEFT_UNCOLLECTED // self.processes if self.processes else 0)
        for generation, worth in enumerate((young, GARBAGE_WORTH_COLLECTING)):
            self.uncollected[generation] += size
            if self.uncollected[generation] > worth:
                self.uncollected[generation] = 0
                gc.collect(2 * generation)

    def _begin_anew(self) -> None:
        """Forget the modules of a project once they are too many: whoever needs one imports it again."""
        most = max(LEAST_KNOWN, MOST_KNOWN // max(1, self.processes))
        outgrown = [key for key, known in self.modules.items() if known.length() > most]
        if not outgrown:
            return
        from gradsight.interp.path_state import parsed_units

        for key in outgrown:
            del self.modules[key]
        parsed_units.cache_clear()
        gc.collect()

    def finder(self, task: Task) -> WorkspaceFinder:
        """Finds what the file of a task imports."""
        key = (task.root, task.settings.most_bytes)
        if key not in self.finders:
            self.finders[key] = WorkspaceFinder(task.root, self._reader(task.settings.most_bytes))
        return self.finders[key]

    def _reader(self, most: int) -> Callable[[str], Source | None]:
        read = reader(most)
        return lambda path: Source(path, self.given[path]) if path in self.given else read(path)


def check_file(
    task: Task,
    finder: WorkspaceFinder,
    modules: dict[tuple[str, int, str], Any],
    fixed: FixWish,
    keeps: bool = False,
) -> Result:
    """Everything there is to say about one file."""
    source = read_task(task) or read_starting(task, finder)
    if source is None:
        return Result(task.path, is_skipped=True)
    if isinstance(source, Unreadable):
        return Result(task.path, unreadable=source.reason)
    from gradsight.analysis import Analyser, analyze, no_modules

    noting = Noting(finder)
    key = (task.root, task.settings.most_bytes, task.settings.models)
    analyser = Analyser(modules.setdefault(key, no_modules()))
    report = analyze(source, task.settings, noting, analyser)
    wanted = fixed.among(report.findings, task.path)
    used = report.used() if keeps else ()
    fixes: tuple[TriedFix, ...] = ()
    if wanted:
        from gradsight.cli.fix_trials import FixTrials

        # The text was just analysed, and its imports are known: nowhere is it cheaper to try.
        trials = FixTrials(source, task.settings, noting, analyser, report)
        fixes = tuple([TriedFix(finding, trials.preferred(finding)) for finding in wanted])
        used = tuple(trials.used) if keeps else ()
        if trials.is_faulty:
            fixes = ()
    broken = tuple(_as_finding(task.path, problem) for problem in report.syntax_problems)
    return Result(
        task.path,
        broken + report.findings,
        report.unused_suppressions,
        imports=tuple(noting.asked),
        used=used,
        gaps=report.gaps,
        coverage=report.coverage,
        fixes=fixes,
    )


def read_task(task: Task) -> Source | Unreadable | None:
    """The source of a task; None when it has nothing to do with torch."""
    most, models = task.settings.most_bytes, task.settings.models
    if task.text is None:
        data = read_bytes(task.path, most)
        if isinstance(data, Unreadable):
            is_other = data.beginning and not is_about_torch_in_bytes(data.beginning, models)
            return None if is_other and not task.is_named else data
        is_about = is_about_torch_in_bytes(data, models)
        if not is_about and not (task.is_named and _is_broken(task.path, data)):
            return Unreadable("is not a text file") if task.is_named and b"\0" in data else None
        text = decode(data)
    else:
        text = task.text
    if isinstance(text, str) and task.path.endswith(".ipynb"):
        notebook = read_notebook(task.path, text)
        text = notebook if isinstance(notebook, Unreadable) else notebook.source.text
    if isinstance(text, str):
        return Source(task.path, text) if len(text) <= most else Unreadable(too_large(most))
    return text


def read_starting(task: Task, finder: WorkspaceFinder) -> Source | None:
    """A program that says nothing of torch, and starts what does."""
    data = read_bytes(task.path, task.settings.most_bytes) if task.text is None else b""
    text = decode(data) if isinstance(data, bytes) and data and task.path.endswith(".py") else None
    if not isinstance(text, str):
        return None
    source = Source(task.path, text)
    return source if starts_torch(source, finder, task.settings.models) else None


def _is_broken(path: str, data: bytes) -> bool:
    """Whether a program that the user names cannot be read as Python: then nobody knows what is in it."""
    if not path.endswith(".py") or b"\0" in data:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(data, path, "exec", PyCF_ONLY_AST, dont_inherit=True)
        except SyntaxError:
            return True
        except (ValueError, RecursionError, MemoryError):
            return False
    return False


def _as_finding(path: str, problem: SyntaxProblem) -> Finding:
    """What does not parse was not checked, so that a run with it has not passed."""
    return Finding(
        SYNTAX_CODE,
        "syntax-error",
        f"does not parse: {problem.message}",
        "error",
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
