"""`gradsight check PATHS…`: find the places where gradients break."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace

from gradsight.cli import ci_options
from gradsight.cli.checking import Checker, FixWish, Result, Task
from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import MergedResults, gather
from gradsight.cli.pool import WorkerDied, processes_worth, work_through
from gradsight.cli.progress import CheckProgress
from gradsight.cli.shell import CLEAN, FAILED, FINDINGS, ISSUES, complain, fail
from gradsight.model.finding import Finding
from gradsight.model.settings import Settings
from gradsight.ops.cache import measured_facts
from gradsight.session import disk
from gradsight.session.configuration import (
    BadValueError,
    Configuration,
    code_prefix,
    configuration_for,
    read_configuration,
)
from gradsight.session.reading import Unreadable, decode, too_large
from gradsight.session.shown_paths import shown_path
from gradsight.session.walking import is_excluded, is_ignored_in, walk
from gradsight.session.workspace import project_root

STDIN = "-"
STDIN_NAME = "<stdin>"
EPILOG = """\
Without a path the current folder is checked. Nothing is run, and no torch is needed.
Settings of a project are read from [tool.gradsight] in its pyproject.toml.

exit codes: 0 no errors and no warnings, 1 errors or warnings, 2 a wrong call, settings that cannot be read, or an
internal error of GradSight"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "paths", nargs="*", default=["."], metavar="PATH", help="files and folders; - is standard input"
    )
    parser.add_argument(
        "--output-format",
        "--format",
        dest="format",
        choices=list(ci_options.FORMATS),
        default="full",
        help="how findings are written (full)",
    )
    parser.add_argument(
        "--select",
        action="append",
        metavar="CODES",
        help="check only these rules: codes, prefixes of codes or names",
    )
    parser.add_argument(
        "--ignore",
        action="append",
        metavar="CODES",
        help="ignore these rules: codes, prefixes of codes or names",
    )
    parser.add_argument("--hints", action="store_true", default=None, help="also report hints")
    parser.add_argument("--stdin-filename", metavar="PATH", help="the file name of standard input")
    parser.add_argument("--config", metavar="FILE", help="read [tool.gradsight] from this pyproject.toml")
    parser.add_argument("--jobs", type=int, metavar="N", help="use at most N processes (all processors)")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours in text (auto)")  # fmt: skip
    parser.add_argument("--fix", action="store_true", help="apply the safe fixes, then report what is left")
    parser.add_argument("--unsafe-fixes", action="store_true", help="with --fix: apply unsafe fixes too")
    parser.add_argument(
        "--add-ignore", action="store_true", help="add a comment that ignores it to every finding"
    )
    parser.add_argument("--exclude", action="append", metavar="PATTERN", help="skip these files, instead of those in the settings")  # fmt: skip
    parser.add_argument("--extend-exclude", action="append", metavar="PATTERN", help="skip these files too")
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but findings")
    parser.add_argument("-o", "--output-file", metavar="FILE", help="write the findings to this file")
    parser.add_argument("-w", "--watch", action="store_true", help="check again whenever a file changes")
    parser.add_argument("--show-files", action="store_true", help="list the files that would be checked")
    parser.add_argument("--show-settings", action="store_true", help="show the settings that would be used")
    ci_options.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Check everything that is named, once or whenever something changes; 1 when there are errors or warnings."""
    if args.fix:
        from gradsight.cli import fix

        wanted = argparse.Namespace(
            paths=args.paths, unsafe=args.unsafe_fixes, diff=False, select=args.select, ignore=args.ignore,
            stdin_filename=args.stdin_filename, config=args.config,
        )  # fmt: skip
        if STDIN in args.paths:
            return fail("--fix needs files; for standard input there is gradsight fix -")
        if fix.run(wanted) == FAILED:
            return FAILED
    if not args.watch:
        return run_once(args)
    from gradsight.cli.watching import watch

    if STDIN in args.paths:
        return fail("--watch needs files, not standard input")

    def watched() -> list[str]:
        planner = Planner({}, args.config)
        return [task.path for task in planner.plan(args.paths or ["."], None)] + list(planner.configurations)

    return watch(watched, lambda: run_once(args))


def run_once(args: argparse.Namespace) -> int:
    """Check everything that is named."""
    try:
        chosen: dict[str, object] = {
            key: _codes(value) for key in ("select", "ignore") if (value := getattr(args, key)) is not None
        }
    except BadValueError as problem:
        return fail(str(problem))
    if args.jobs is not None and args.jobs < 1:
        return fail(f"--jobs needs a number from 1, not {args.jobs}")
    if args.hints:
        chosen["hints"] = True
    if args.exclude:
        chosen["exclude"] = _patterns(args.exclude)
    planner = Planner(chosen, args.config, _patterns(args.extend_exclude or ()))
    try:
        tasks = list(planner.plan(args.paths or ["."], args.stdin_filename))
    except UsageProblem as problem:
        return fail(str(problem))
    if args.show_files or args.show_settings:
        from gradsight.cli import listing

        if args.show_files:
            listing.write_files(tasks, sys.stdout)
        if args.show_settings:
            listing.write_settings(tasks, list(planner.configurations), sys.stdout)
        return FAILED if planner.failed else CLEAN
    fixed = ci_options.fixes_wanted(args)
    results = ci_options.check(args, tasks, lambda some: check_all(some, args.jobs, fixed, not args.no_cache))
    failed = planner.failed
    for task, result in zip(tasks, results):
        if result.unreadable:
            complain(f"{shown_path(result.path)}: {result.unreadable}")
            failed = failed or task.is_named
        failed = tell_faults(result) or failed
    documents = Documents(
        {task.path: task.text for task in tasks if task.text is not None},
        settings={task.path: task.settings for task in tasks},
        keeps_fixes=not args.no_cache,
        tried={result.path: result for result in results if result.fixes},
    )
    gathered = gather(
        results, Settings(hints=bool(args.hints) or planner.wants_hints), documents.source, planner.is_wanted
    )
    gathered = replace(gathered, findings=tuple(filter(planner.reports, gathered.findings)))
    if failed and not gathered.looked_at and args.format in ci_options.FOR_PEOPLE:
        # What there is to say was said.
        return FAILED
    try:
        gathered = ci_options.narrow(args, gathered, documents, [task.path for task in tasks])
    except ci_options.Unusable as problem:
        return fail(str(problem))
    if args.add_ignore:
        from gradsight.cli.ignoring import add_comments

        count, is_fine = add_comments(
            [each for each in gathered.findings if each.severity in ("error", "warning")]
        )
        print(f"{count} finding{'' if count == 1 else 's'} ignored from now on")
        return CLEAN if is_fine and not failed else FAILED
    try:
        deliver(args, replace(gathered, is_quiet=args.quiet), documents)
    except BrokenPipeError:
        raise
    except OSError as problem:
        return fail(f"{args.output_file} cannot be written: {(problem.strerror or str(problem)).lower()}")
    if failed:
        return FAILED
    return FINDINGS if gathered.alarms and not args.exit_zero else CLEAN


def deliver(args: argparse.Namespace, gathered: MergedResults, documents: Documents) -> None:
    """Write the findings where they are wanted."""
    if args.output_file is not None:
        with open(args.output_file, "w", encoding="utf-8") as out:
            ci_options.write(args, gathered, documents, out)
    elif not args.quiet or gathered.findings or args.format not in ci_options.FOR_PEOPLE:
        ci_options.write(args, gathered, documents, sys.stdout)


class UsageProblem(Exception):
    """The call itself cannot be carried out."""


class Planner:
    """From the paths of a call to the files to check, each with its project and settings."""

    def __init__(
        self, chosen: dict[str, object], config: str | None, also_excluded: tuple[str, ...] = ()
    ) -> None:
        self.chosen = chosen
        self.also_excluded = also_excluded
        self.config = config
        self.configurations: dict[str, Configuration] = {}
        self.roots: dict[str, Settings] = {}
        self.bases: dict[str, Settings] = {}
        """The projects that ignore some rules in some files, by the folder that their patterns speak of."""
        self.failed = False
        self.wants_hints = False
        self.facts = measured_facts()

    def plan(self, paths: Iterable[str], stdin_name: str | None) -> Iterator[Task]:
        """The tasks in the order of their names, each file once."""
        found: dict[str, Task] = {}
        for path in paths:
            for task in self._tasks_of(path, stdin_name):
                found.setdefault(task.path, task)
        yield from (found[path] for path in sorted(found))

    def reports(self, finding: Finding) -> bool:
        """Whether a rule is reported in the file that it speaks of: some are ignored in some files."""
        return not any(
            is_ignored_in(finding.path, finding.code, base, settings) for base, settings in self.bases.items()
        )

    def is_wanted(self, path: str) -> bool:
        """Whether a file that was only imported is spoken of: not when the user excluded it."""
        return not any(is_excluded(path, root, settings.exclude) for root, settings in self.roots.items())

    def _tasks_of(self, name: str, stdin_name: str | None) -> Iterator[Task]:
        if name == STDIN:
            yield self._stdin_task(stdin_name)
            return
        path = os.path.abspath(name)
        if disk.is_folder(path):
            root, base, settings = self._project(path)
            for file, size in walk(path, base, settings.exclude):
                yield Task(file, root, settings, size)
        elif disk.exists(path):
            root, _, settings = self._project(path)
            yield Task(path, root, settings, _size(path), is_named=True)
        else:
            complain(f"no such file or folder: {name}")
            self.failed = True

    def _stdin_task(self, stdin_name: str | None) -> Task:
        path = os.path.abspath(stdin_name) if stdin_name else os.path.join(os.getcwd(), STDIN_NAME)
        root, _, settings = self._project(os.path.dirname(path))
        data = sys.stdin.buffer.read(settings.most_bytes + 1)
        text = (
            decode(data) if len(data) <= settings.most_bytes else Unreadable(too_large(settings.most_bytes))
        )
        if isinstance(text, Unreadable):
            raise UsageProblem(f"standard input {text.reason}")
        return Task(path if stdin_name else STDIN_NAME, root, settings, len(text), text)

    def _project(self, path: str) -> tuple[str, str, Settings]:
        """The project root, the folder that exclude patterns speak of, and the settings for a path."""
        if self.config is not None:
            configuration = self._read(os.path.abspath(self.config))
        else:
            configuration = configuration_for(path)
            self._tell(configuration)
        settings = replace(configuration.settings, facts=self.facts, **self.chosen)  # type: ignore[arg-type]
        if self.also_excluded:
            settings = replace(settings, exclude=(*settings.exclude, *self.also_excluded))
        self.wants_hints = self.wants_hints or settings.hints
        root = project_root(path)
        base = os.path.dirname(configuration.path) if configuration.path else root
        if settings.per_file_ignores:
            self.bases[base] = settings
        if settings.exclude:
            self.roots[base] = settings
        return root, base, settings

    def _read(self, path: str) -> Configuration:
        if not disk.is_file(path):
            raise UsageProblem(f"no such file: {self.config}")
        configuration = self.configurations.get(path) or read_configuration(path)
        self._tell(configuration)
        return configuration

    def _tell(self, configuration: Configuration) -> None:
        """Say what was not understood, once per file."""
        if configuration.path and configuration.path not in self.configurations:
            self.configurations[configuration.path] = configuration
            for text in configuration.complaints:
                complain(text)
            self.failed = self.failed or bool(configuration.complaints)


def check_all(tasks: list[Task], jobs: int | None, fixed: FixWish, keeps: bool) -> list[Result]:
    """The result of every task, in the order of the tasks."""
    processes = processes_worth(sum(task.size for task in tasks), len(tasks), jobs)
    if processes > 1:
        # Imported before the processes are forked, the engine is shared by all of them.
        importlib.import_module("gradsight.analysis")
    largest_first = sorted(range(len(tasks)), key=lambda number: -tasks[number].size)
    results: dict[int, Result] = {}
    checker = Checker(tuple(tasks), fixed=fixed, keeps=keeps, processes=processes)
    with CheckProgress(len(tasks), sys.stderr) as progress:
        for number, result in work_through(checker, largest_first, processes):
            if isinstance(result, WorkerDied):
                reason = f"the process that checked it ended with code {result.exit_code}"
                result = Result(tasks[number].path, fault=reason)
            results[number] = result
            progress.step()
    return [results[number] for number in range(len(tasks))]


def tell_faults(result: Result) -> bool:
    """Say what failed on our side while a file was checked, and how to report it; whether there was anything."""
    name = shown_path(result.path)
    inside = [gap for gap in result.gaps if gap.kind == "internal"]
    for gap in inside:
        where, rest = (
            (f"{name}:{gap.line}", "the rest of the file") if gap.line else (name, "the other files")
        )
        were = "was" if gap.line else "were"
        complain(
            f"internal error in {where}, a fault of gradsight: {gap.reason}; {rest} {were} checked "
            f"(how to report it: {ISSUES})"
        )
    if result.fault:
        # A fault in one entry is logged too: then its trace is all that is left to show.
        reason = "" if inside else f"internal error while checking {name}, a fault of gradsight "
        complain(f"{reason or 'the trace '}(how to report it: {ISSUES})", result.fault)
    return bool(inside or result.fault)


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _patterns(values: Iterable[str]) -> tuple[str, ...]:
    """The patterns of an option that may be given several times, each time with several of them."""
    return tuple(word.strip() for value in values for word in value.split(",") if word.strip())


def _codes(values: list[str]) -> tuple[str, ...]:
    """The prefixes of an option that may be given several times, each time with several codes."""
    words = [word for value in values for word in value.split(",") if word.strip()]
    return tuple(code_prefix(word) for word in words)
