"""`gradsight fix PATHS…`: rewrite what can be repaired safely."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from gradsight.cli.check import STDIN, Planner, UsageProblem
from gradsight.cli.checking import TORCH, Faults, Task, shown_path
from gradsight.cli.shell import CLEAN, FAILED, FINDINGS, complain, fail
from gradsight.cli.writing import Changed, encode, replace_file
from gradsight.model.finding import Finding
from gradsight.model.fix import Fix, line_starts
from gradsight.model.report import Report
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from gradsight.session.configuration import BadValueError, code_prefix
from gradsight.session.reading import Unreadable, decode, read_bytes, reader
from gradsight.session.workspace import WorkspaceFinder

ALARMS = ("error", "warning")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "paths", nargs="*", default=["."], metavar="PATH", help="files and folders; - is standard input"
    )
    parser.add_argument(
        "--unsafe", action="store_true", help="apply fixes too that have to guess what was meant"
    )
    parser.add_argument("--diff", action="store_true", help="show what would change, and change nothing")
    parser.add_argument(
        "--select", action="append", metavar="CODES", help="repair these codes, prefixes or names only"
    )
    parser.add_argument(
        "--ignore", action="append", metavar="CODES", help="leave these codes, prefixes or names alone"
    )
    parser.add_argument("--stdin-filename", metavar="PATH", help="the name of what comes from standard input")
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
    work = Work(args.unsafe, args.diff, wanted)
    for task in tasks:
        work.do(task)
    sys.stdout.flush()
    print(work.summary(), file=sys.stderr if args.diff or STDIN in args.paths else sys.stdout)
    if planner.failed or work.failed:
        return FAILED
    return FINDINGS if work.left or (args.diff and work.changed) else CLEAN


@dataclass(slots=True)
class Repaired:
    """What became of one file: its new text, the fixes that made it, and what they could not repair."""

    text: str
    fixes: list[Fix]
    left: tuple[Finding, ...]


class Work:
    """One run of the command: its choices, and what it has done so far."""

    def __init__(self, unsafe: bool, shows_only: bool, wanted: Settings) -> None:
        self.unsafe = unsafe
        self.shows_only = shows_only
        self.wanted = wanted
        self.finders: dict[str, WorkspaceFinder] = {}
        self.fixed = 0
        self.changed = 0
        self.left = 0
        self.left_alone = 0
        """Files that could not be looked at or written, and notebooks."""
        self.failed = False

    def do(self, task: Task) -> None:
        """Repair one file, and say what cannot be done."""
        if not self._is_done(task):
            self.left_alone += 1

    def _is_done(self, task: Task) -> bool:
        data = read_bytes(task.path) if task.text is None else task.text.encode("utf-8", "surrogatepass")
        if isinstance(data, Unreadable):
            self._complain(task, data.reason)
            return False
        if task.path.endswith(".ipynb"):
            if task.is_named:
                self._complain(task, "notebooks are repaired in the editor only")
            return not task.is_named and TORCH not in data
        text = task.text if task.text is not None else decode(data)
        if isinstance(text, Unreadable):
            if task.is_named or TORCH in data:
                self._complain(task, text.reason)
            return not task.is_named and TORCH not in data
        with Faults() as faults:
            result = self.repair(task, text) if TORCH in data else Repaired(text, [], ())
        if faults.traces:
            self._complain(task, "internal error, a fault of gradsight\n" + "\n".join(faults.traces))
        if task.text is not None and not self.shows_only:
            sys.stdout.write(result.text)
        elif result.text != text and not self._is_delivered(task, data, text, result):
            return False
        self.left += len(result.left)
        if result.fixes:
            self.fixed += len(result.fixes)
            self.changed += 1
        return True

    def repair(self, task: Task, text: str) -> Repaired:
        """The text after all fixes, and the alarms that are left."""
        from gradsight.analysis import analyze
        from gradsight.fixing import fix_all

        finder = self.finders.get(task.root)
        if finder is None:
            finder = self.finders[task.root] = WorkspaceFinder(task.root, reader())
        known: dict[str, Report] = {}

        def check(source: Source) -> Report:
            if source.text not in known:
                known[source.text] = analyze(source, task.settings, finder)
            return known[source.text]

        source = Source(task.path, text)
        changed, fixes = fix_all(
            source, check=check, unsafe=self.unsafe, wanted=lambda finding: self.wanted.wants(finding.code)
        )
        left = check(Source(task.path, changed)).findings
        return Repaired(
            changed,
            fixes,
            tuple(
                one
                for one in left
                if one.severity in ALARMS and one.path == task.path and self.wanted.wants(one.code)
            ),
        )

    def _is_delivered(self, task: Task, data: bytes, text: str, result: Repaired) -> bool:
        """Show the difference, or write the file."""
        if self.shows_only:
            sys.stdout.writelines(difference(shown_path(task.path), text, result.text))
            return True
        try:
            replace_file(task.path, data, encode(result.text, data))
        except Changed:
            self._complain(task, "changed while it was being repaired; nothing was written")
            return False
        except OSError as problem:
            self._complain(task, f"cannot be written: {(problem.strerror or str(problem)).lower()}")
            return False
        for fix in result.fixes:
            print(f"{shown_path(task.path)}: {fix.code} {fix.title}")
        return True

    def _complain(self, task: Task, text: str) -> None:
        complain(f"{shown_path(task.path)}: {text}")
        self.failed = True

    def summary(self) -> str:
        """One line about the whole run."""
        verb = "would be applied" if self.shows_only else "applied"
        fixes = f"{self.fixed} fix{'' if self.fixed == 1 else 'es'} {verb}"
        files = f" in {self.changed} file{'' if self.changed == 1 else 's'}" if self.changed else ""
        left = []
        if self.left:
            left.append(f"{self.left} finding{'' if self.left == 1 else 's'} left")
        if self.left_alone:
            left.append(f"{self.left_alone} file{'' if self.left_alone == 1 else 's'} left alone")
        return ", ".join([f"{fixes}{files}", *(left or ["nothing left"])])


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
