"""`gradsight fix PATHS…`: apply the safe fixes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from gradsight.cli.check import STDIN, Planner, UsageProblem
from gradsight.cli.checking import SYNTAX_CODE, Checker, Faults, Result, Task
from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import gather
from gradsight.cli.shell import CLEAN, FAILED, FINDINGS, complain, fail
from gradsight.cli.writing import Changed, encode, remove_strays, replace_file
from gradsight.model.finding import Finding
from gradsight.model.fix import Fix, line_starts
from gradsight.model.relevance import is_about_torch_in_bytes
from gradsight.model.report import Report
from gradsight.model.settings import Settings
from gradsight.model.showing import visible
from gradsight.model.source import Source
from gradsight.session.configuration import BadValueError, code_prefix
from gradsight.session.notebook_edits import with_module
from gradsight.session.notebooks import JoinedCells, read_notebook
from gradsight.session.reading import Unreadable, decode, read_bytes, reader
from gradsight.session.shown_paths import shown_path
from gradsight.session.workspace import WorkspaceFinder

ALARMS = ("error", "warning")
MOST_PLACES = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "paths", nargs="*", default=["."], metavar="PATH", help="files and folders; - is standard input"
    )
    parser.add_argument(
        "--unsafe",
        "--unsafe-fixes",
        action="store_true",
        help="also apply fixes that change what the program does",
    )
    parser.add_argument("--diff", action="store_true", help="show what would change, and change nothing")
    parser.add_argument(
        "--select",
        action="append",
        metavar="CODES",
        help="fix only these rules: codes, prefixes of codes or names",
    )
    parser.add_argument(
        "--ignore",
        action="append",
        metavar="CODES",
        help="ignore these rules: codes, prefixes of codes or names",
    )
    parser.add_argument("--stdin-filename", metavar="PATH", help="the file name of standard input")
    parser.add_argument("--config", metavar="FILE", help="read [tool.gradsight] from this pyproject.toml")


def run(args: argparse.Namespace) -> int:
    """Repair everything that is named.

    0: nothing of weight is left, and with --diff nothing would change; 1 otherwise; 2: something could not be done.
    """
    try:
        wanted = Settings(select=_codes(args.select) or ("GS",), ignore=_codes(args.ignore))
    except BadValueError as problem:
        return fail(str(problem))
    planner = Planner({}, args.config)
    try:
        tasks = list(planner.plan(args.paths or ["."], args.stdin_filename))
    except UsageProblem as problem:
        return fail(str(problem))
    work = Work(args.unsafe, args.diff, Tally(tasks, wanted, planner.is_wanted))
    for folder in {os.path.dirname(task.path) for task in tasks if task.text is None}:
        remove_strays(folder)
    for task in tasks:
        work.do(task)
    sys.stdout.flush()
    after = work.tally.after(work.texts)
    if tasks or not planner.failed:
        summary = work.summary(after)
        print(summary, file=sys.stderr if args.diff or STDIN in args.paths else sys.stdout)
    if planner.failed or work.failed:
        return FAILED
    return FINDINGS if _alarms(after) or (args.diff and work.texts) else CLEAN


class Tally:
    """What `check` says about the same files, before and after: each finding once, those of importing files included."""

    def __init__(self, tasks: Sequence[Task], wanted: Settings, is_spoken_of: Callable[[str], bool]) -> None:
        self.tasks = tasks
        self.wanted = wanted
        self.is_spoken_of = is_spoken_of
        checker = Checker(tuple(tasks))
        self.results = [checker(number) for number in range(len(tasks))]
        self.before = self._findings(self.results, {})

    def is_worth_repairing(self, path: str) -> bool:
        """Whether there is anything to repair in a file."""
        return any(finding.path == path for finding in self.before)

    def after(self, texts: Mapping[str, str]) -> list[Finding]:
        """All that is found once these files have got new texts."""
        if not texts:
            return self.before
        tasks = tuple(replace(task, text=texts.get(task.path, task.text)) for task in self.tasks)
        checker = Checker(tasks, given=texts)
        results = [
            checker(number) if self._rests_on(checker, number, result, texts) else result
            for number, result in enumerate(self.results)
        ]
        return self._findings(results, texts)

    def _rests_on(self, checker: Checker, number: int, result: Result, texts: Mapping[str, str]) -> bool:
        if result.path in texts or _has_other_names(result.path):
            return True
        imported = (checker.finder(self.tasks[number])(*question) for question in result.imports)
        return any(source is not None and source.path in texts for source in imported)

    def _findings(self, results: Sequence[Result], texts: Mapping[str, str]) -> list[Finding]:
        given = {task.path: task.text for task in self.tasks if task.text is not None} | dict(texts)
        documents = Documents(given, settings={task.path: task.settings for task in self.tasks})
        found = gather(results, Settings(), documents.source, self.is_spoken_of).findings
        return [finding for finding in found if self.wanted.wants(finding.code)]


class Work:
    """One run of the command: its choices, and what it has done so far."""

    def __init__(self, unsafe: bool, shows_only: bool, tally: Tally) -> None:
        self.unsafe = unsafe
        self.shows_only = shows_only
        self.tally = tally
        self.finders: dict[str, WorkspaceFinder] = {}
        self.texts: dict[str, str] = {}
        """The new texts, by path."""
        self.fixes = 0
        self.left_alone: set[str] = set()
        """Files that could not be looked at or written."""
        self.failed = False

    def do(self, task: Task) -> None:
        """Repair one file, and say what cannot be done."""
        if not self._is_done(task):
            self.left_alone.add(task.path)

    def _is_done(self, task: Task) -> bool:
        most, models = task.settings.most_bytes, task.settings.models
        data = (
            read_bytes(task.path, most) if task.text is None else task.text.encode("utf-8", "surrogatepass")
        )
        if isinstance(data, Unreadable):
            if data.beginning and not is_about_torch_in_bytes(data.beginning, models) and not task.is_named:
                return True
            self._complain(task, data.reason)
            return False
        if task.path.endswith(".ipynb") and not is_about_torch_in_bytes(data, models) and not task.is_named:
            return True
        text = task.text if task.text is not None else decode(data)
        if isinstance(text, Unreadable):
            if task.is_named or is_about_torch_in_bytes(data, models):
                self._complain(task, text.reason)
            return not task.is_named and not is_about_torch_in_bytes(data, models)
        cells = read_notebook(task.path, text) if task.path.endswith(".ipynb") else None
        if isinstance(cells, Unreadable):
            self._complain(task, cells.reason)
            return False
        program = cells.source.text if cells is not None else text
        with Faults() as faults:
            is_worth = self.tally.is_worth_repairing(task.path)
            changed, fixes = self.repair(task, program) if is_worth else (program, [])
        new: str | None = changed if cells is None else text
        if cells is not None and changed != program:
            new = with_module(text, cells, changed)
        if new is None:
            self._complain(task, "a fix would change two cells at once; nothing was written")
            return False
        if faults.traces:
            complain(
                f"{shown_path(task.path)}: internal error, a fault of gradsight", "\n".join(faults.traces)
            )
            self.failed = True
        if task.text is not None and not self.shows_only:
            sys.stdout.write(new)
        elif new != text and not self._is_delivered(task, data, text, new, fixes):
            return False
        if fixes:
            self.fixes += len(fixes)
            self.texts[task.path] = new
        return True

    def repair(self, task: Task, text: str) -> tuple[str, list[Fix]]:
        """The text after all fixes, and the fixes."""
        from gradsight.analysis import analyze
        from gradsight.fixing import fix_all

        finder = self.finders.get(task.root)
        if finder is None:
            finder = self.finders[task.root] = WorkspaceFinder(task.root, reader(task.settings.most_bytes))
        known: dict[str, Report] = {}

        def check(source: Source) -> Report:
            if source.text not in known:
                known[source.text] = analyze(source, task.settings, finder)
            return known[source.text]

        return fix_all(
            Source(task.path, text),
            check=check,
            unsafe=self.unsafe,
            wanted=lambda finding: self.tally.wanted.wants(finding.code),
        )

    def _is_delivered(self, task: Task, data: bytes, text: str, new: str, fixes: Sequence[Fix]) -> bool:
        """Show the difference, or write the file."""
        if self.shows_only:
            # A patch is exact where a program reads it; a terminal is shown what it would not act on.
            shown = visible_line if sys.stdout.isatty() else str
            for name, before, after in _changed_parts(task.path, text, new):
                sys.stdout.writelines(map(shown, difference(name, before, after)))
            return True
        if not task.is_named and _leads_outside(task):
            self._complain(task, "is a link to a file outside of this folder; name it to have it fixed")
            return False
        try:
            replace_file(task.path, data, encode(new, data))
        except Changed:
            self._complain(task, "changed while it was being fixed; nothing was written")
            return False
        except OSError as problem:
            self._complain(task, f"cannot be written: {(problem.strerror or str(problem)).lower()}")
            return False
        for fix in fixes:
            print(f"{shown_path(task.path)}: {fix.code} {visible(fix.title)}")
        return True

    def _complain(self, task: Task, text: str) -> None:
        complain(f"{shown_path(task.path)}: {text}")
        self.failed = True

    def summary(self, after: Sequence[Finding]) -> str:
        """One line about the whole run: `1 fix applied in 1 file, 2 left (no safe fix): model.py:27, model.py:28`.

        What is counted are the fixes, one for each line above: a fix may end several findings, and may bring one to light.
        """
        left = _alarms(after)
        verb = "would be applied" if self.shows_only else "applied"
        fixes = f"{self.fixes} fix{'' if self.fixes == 1 else 'es'} {verb}"
        parts = [f"{fixes}{f' in {_files(len(self.texts))}' if self.texts else ''}"]
        hopeless = [finding for finding in left if finding.path not in self.left_alone]
        untouched = len(left) - len(hopeless)
        if self.left_alone:
            inside = f" with {untouched} finding{'' if untouched == 1 else 's'}" if untouched else ""
            parts.append(f"{_files(len(self.left_alone))} left alone{inside}")
        broken = [finding for finding in hopeless if finding.code == SYNTAX_CODE]
        found = [finding for finding in hopeless if finding.code != SYNTAX_CODE]
        if found:
            parts.append(
                f"{len(found)} left ({'no fix' if self.unsafe else 'no safe fix'}): {_places(found)}"
            )
        if broken:
            parts.append(f"{_files(len(broken))} not parsed: {_places(broken)}")
        return ", ".join(parts if len(parts) > 1 else [*parts, "nothing left"])


def _has_other_names(path: str) -> bool:
    """Whether a file may have been changed under another name."""
    return os.path.islink(path) or (os.path.exists(path) and os.stat(path).st_nlink > 1)


def _alarms(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity in ALARMS]


def _places(findings: Sequence[Finding]) -> str:
    """Where these are, as far as one line has room."""
    places = [f"{shown_path(finding.path)}:{finding.span.line}" for finding in findings[:MOST_PLACES]]
    return ", ".join(places) + (", ..." if len(findings) > MOST_PLACES else "")


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"


def _changed_parts(path: str, old: str, new: str) -> Iterator[tuple[str, str, str]]:
    """What is compared, by name: a file with itself, and of a notebook each cell with itself."""
    name = shown_path(path)
    before, after = (read_notebook(path, text) if path.endswith(".ipynb") else None for text in (old, new))
    if not isinstance(before, JoinedCells) or not isinstance(after, JoinedCells):
        yield name, old, new
        return
    for one, other in zip(before.cells, after.cells, strict=True):
        yield f"{name}:cell {one.number}", f"{one.text}\n", f"{other.text}\n"


def _leads_outside(task: Task) -> bool:
    """Whether a file that was found in a folder is a link to one outside of it and of its project."""
    target = os.path.realpath(task.path)
    homes = {os.path.realpath(folder) for folder in (task.root, os.path.dirname(task.path))}
    return not any(target.startswith(os.path.join(home, "")) for home in homes)


def visible_line(line: str) -> str:
    """A line of a difference for a terminal."""
    return "\n".join(visible(part) for part in line.split("\n"))


def difference(name: str, old: str, new: str) -> Iterator[str]:
    """A unified diff whose lines keep the ends that the file has."""
    from difflib import unified_diff

    for line in unified_diff(_lines(old), _lines(new), name, name):
        yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """Lines with their ends, as Python counts them."""
    starts = [*line_starts(text), len(text)]
    return [text[start:end] for start, end in pairwise(starts) if start < end]


def _codes(values: list[str] | None) -> tuple[str, ...]:
    words = [word for value in values or () for word in value.split(",") if word.strip()]
    return tuple(code_prefix(word) for word in words)
