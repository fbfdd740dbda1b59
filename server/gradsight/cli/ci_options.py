"""What a team puts into continuous integration: more formats, a baseline, changed lines only, counts, kept results."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Collection
from typing import TextIO

from gradsight.cli.checking import FixWish, Result, Task
from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import MergedResults
from gradsight.cli.shell import complain

Check = Callable[[list[Task]], list[Result]]

# The module that writes each format offers `write(gathered, documents, out, color)`.
FORMATS = {
    "full": "gradsight.cli.report_text",
    "text": "gradsight.cli.report_text",
    "concise": "gradsight.cli.report_concise",
    "grouped": "gradsight.cli.report_grouped",
    "json": "gradsight.cli.report_json",
    "json-lines": "gradsight.cli.report_jsonlines",
    "github": "gradsight.cli.report_github",
    "sarif": "gradsight.cli.report_sarif",
    "junit": "gradsight.cli.report_junit",
    "gitlab": "gradsight.cli.report_gitlab",
    "azure": "gradsight.cli.report_azure",
    "rdjson": "gradsight.cli.report_rdjson",
}


FOR_PEOPLE = ("full", "text", "concise", "grouped")
WITH_FIXES = ("json", "json-lines")
ALARMS = ("error", "warning")
MOST_TRIED = 25
"""The most findings whose fixes are tried for a mark in a listing."""


class Unusable(Exception):
    """An option cannot be carried out; the text says why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `check` that are about adopting it."""
    parser.add_argument("--baseline", metavar="FILE", help="report only findings that are not in this file")
    parser.add_argument(
        "--write-baseline", action="store_true", help="write the present findings to the baseline"
    )
    parser.add_argument(
        "--diff", metavar="BASE", help="report only what lines changed since this commit cause"
    )
    parser.add_argument(
        "--statistics", action="store_true", help="count findings by rule instead of showing them"
    )
    parser.add_argument(
        "--gaps", action="store_true", help="also show what was not understood (full and json)"
    )
    parser.add_argument("--no-cache", action="store_true", help="check every file, changed or not")


def check(args: argparse.Namespace, tasks: list[Task], check_all: Check) -> list[Result]:
    """The result of every task, from earlier ones where nothing changed."""
    if args.no_cache:
        return check_all(tasks)
    from gradsight.cli.result_cache import check_with_cache

    return check_with_cache(tasks, check_all)


def fixes_wanted(args: argparse.Namespace) -> FixWish:
    """Of which findings the report will tell the fixes; where most are left out of it, it is seen later which."""
    if args.statistics or args.add_ignore or args.baseline is not None or args.diff is not None:
        return FixWish(())
    if args.format in FOR_PEOPLE:
        return FixWish(ALARMS, MOST_TRIED)
    return FixWish((*ALARMS, "info") if args.format in WITH_FIXES else ())


def narrow(
    args: argparse.Namespace, gathered: MergedResults, documents: Documents, checked: Collection[str]
) -> MergedResults:
    """The findings that count, of those in the files that were checked.  Raises Unusable."""
    if args.write_baseline and args.baseline is None:
        raise Unusable("--write-baseline needs --baseline FILE")
    if args.gaps and args.format not in ("full", "text", "json"):
        raise Unusable(f"--gaps is written as text or json, not as {args.format}")
    if args.baseline is not None:
        gathered = _compared(args, gathered, documents, checked)
    if args.diff is not None:
        from gradsight.cli import changes

        try:
            return changes.narrow(gathered, changes.changes_since(args.diff, args.paths or ["."]))
        except changes.NoDiff as problem:
            raise Unusable(str(problem)) from None
    return gathered


def write(args: argparse.Namespace, gathered: MergedResults, documents: Documents, out: TextIO) -> None:
    """The findings in the format that was asked for, or their counts."""
    if args.statistics:
        from gradsight.cli import statistics

        statistics.write(gathered, out, args.format)
        return
    if args.gaps and args.format == "json":
        from gradsight.cli import report_json

        report_json.write_with_gaps(gathered, documents, out)
        return
    if args.gaps:
        from gradsight.cli import report_gaps

        out.write("".join(f"{line}\n" for line in report_gaps.lines_of(gathered.results, documents)))
    if args.write_baseline and args.format in FOR_PEOPLE and not gathered.findings:
        # That they are known now does not mean that there is nothing to report.
        return
    importlib.import_module(FORMATS[args.format]).write(gathered, documents, out, args.color)


def _compared(
    args: argparse.Namespace, gathered: MergedResults, documents: Documents, checked: Collection[str]
) -> MergedResults:
    from gradsight.cli import baseline

    try:
        if args.write_baseline:
            count = baseline.write(gathered.findings, documents, args.baseline)
            complain(f"{_findings(count)} taken as known: written to {args.baseline}")
        compared = baseline.compare(gathered, documents, args.baseline, checked)
    except baseline.BadBaseline as problem:
        raise Unusable(str(problem)) from None
    if compared.known and not args.write_baseline:
        complain(f"{_findings(compared.known)} known to {args.baseline} left out")
    if compared.stale:
        count = compared.stale
        entries = "1 entry is" if count == 1 else f"{count} entries are"
        complain(f"{entries} no longer found: rewrite {args.baseline} with --write-baseline")
    return compared.fresh


def _findings(count: int) -> str:
    return f"{count} finding{'' if count == 1 else 's'}"
