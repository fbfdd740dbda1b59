"""The command line: `save` a snapshot, `compare` two."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gradsight_dev.compare_reports import snapshots
from gradsight_dev.compare_reports.corpora import Item, UnknownCorpus, corpus
from gradsight_dev.compare_reports.differences import as_text, differences
from gradsight_dev.compare_reports.workers import records_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 when two snapshots differ, 2 when the call is wrong."""
    options = _parser().parse_args(arguments)
    if options.command == "save":
        return _save(options.out, options.corpus, options.every)
    found = differences(snapshots.read(options.before), snapshots.read(options.after), options.common)
    for line in as_text(found, options.brief):
        print(line)
    return 1 if found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.compare_reports", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    save = commands.add_parser("save", help="analyse a corpus and keep every finding")
    save.add_argument("out", type=Path, metavar="OUT.json.gz")
    save.add_argument(
        "--corpus",
        nargs="+",
        default=["fixtures"],
        metavar="WORD",
        help="fixtures [DIR], fuzz N SEED, or packages DIR… (fixtures)",
    )
    save.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth program (1)")
    compare = commands.add_parser("compare", help="print what two snapshots say differently")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    compare.add_argument("--common", action="store_true", help="only programs that both hold")
    compare.add_argument("--brief", action="store_true", help="only the counts")
    return parser


def _save(out: Path, words: list[str], every: int) -> int:
    try:
        items = corpus(words)
    except UnknownCorpus as problem:
        print(problem, file=sys.stderr)
        return 2
    some = itertools.islice(items, 0, None, every)
    totals = snapshots.write(out, " ".join(words), records_of(_told(some)))
    print(
        f"{totals.programs} programs, {totals.findings} findings, {totals.failed} failed, "
        f"{totals.seconds:.1f} CPU seconds -> {out}"
    )
    return 0


def _told(items: Iterator[Item]) -> Iterator[Item]:
    """The same programs; on a terminal their number is shown."""
    for number, item in enumerate(items, 1):
        if sys.stderr.isatty():
            print(f"\r{number}", end="", file=sys.stderr, flush=True)
        yield item
