"""The command line: fetch the sources, apply every edit, print the score."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gradsight_dev.injected.catalogue import SETS, read_sets
from gradsight_dev.injected.edits import Misplaced
from gradsight_dev.injected.origins import Unavailable, fetched
from gradsight_dev.injected.scoring import Outcome, score
from gradsight_dev.injected.summary import as_text, details


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 when a source could not be had or is another version."""
    options = _parser().parse_args(arguments)
    outcomes: list[Outcome] = []
    failed = 0
    for target in read_sets(options.sets):
        if options.only not in f"{target.origin.name}/{target.path}":
            continue
        try:
            outcomes += score(target, fetched(target.origin, options.cache, options.mirror))
        except (Unavailable, Misplaced) as problem:
            print(f"{target.origin.name} {target.origin.version}: {problem}", file=sys.stderr)
            failed = 1
    for line in as_text(outcomes):
        print(line)
    if options.verbose:
        print()
        for line in details(outcomes):
            print(line)
    return failed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.injected", description=__doc__)
    cache = Path(tempfile.gettempdir()) / "gradsight-injected"
    parser.add_argument(
        "--cache", type=Path, default=cache, help="where sources are kept (a temporary folder)"
    )
    parser.add_argument(
        "--mirror", type=Path, help="a folder of git directories to be asked before the network"
    )
    parser.add_argument("--sets", type=Path, default=SETS, help="the folder of the sets")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only files whose source and path contain this"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="name every miss and every false alarm")
    return parser
