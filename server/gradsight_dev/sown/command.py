"""The command line: sow into every repository of a folder, print the score of both halves."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gradsight_dev.injected.scoring import ALARM, FOUND
from gradsight_dev.sown.fields import HALVES, half_of, repositories, training_files
from gradsight_dev.sown.harvest import Reaped, reap


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    reaped: list[Reaped] = []
    for number, repository in enumerate(repositories(options.folder)):
        if number % options.parts != options.part or options.half not in ("", half_of(repository.name)):
            continue
        if options.repository not in repository.name:
            continue
        for path in training_files(repository, options.files):
            for one in reap(path, repository, options.only, options.verdict):
                reaped.append(one)
                if options.log:
                    print(json.dumps(_line(one)), file=options.log, flush=True)
    for line in table(reaped):
        print(line)
    return 0


def table(reaped: Sequence[Reaped]) -> Iterator[str]:
    """Found or alarmed of all, by kind of edit, the halves apart."""
    for verdict, result in (("bug", FOUND), ("safe", ALARM)):
        chosen = [one for one in reaped if one.edit.verdict == verdict]
        yield f"{verdict:18} " + " ".join(f"{half:>16}" for half in HALVES)
        yield _row("all", chosen, result)
        for name in sorted({one.edit.name.split(" ")[0] for one in chosen}):
            yield _row("  " + name, [one for one in chosen if one.edit.name.split(" ")[0] == name], result)


def _row(title: str, reaped: Sequence[Reaped], result: str) -> str:
    cells = []
    for half in HALVES:
        chosen = [one for one in reaped if one.half == half]
        counted = sum(one.result == result for one in chosen)
        share = f"{100 * counted / len(chosen):3.0f} %" if chosen else ""
        cells.append(f"{counted:4}/{len(chosen):4} {share:>6}")
    return f"{title:18} " + " ".join(cells)


def _line(one: Reaped) -> dict[str, object]:
    said = [
        [alarm.code, alarm.lines[0], alarm.path.rpartition("/")[2], alarm.message] for alarm in one.alarms
    ]
    return {
        "repository": one.repository,
        "half": one.half,
        "path": one.path,
        "name": one.edit.name,
        "verdict": one.edit.verdict,
        "kind": one.edit.kind,
        "also": one.edit.also,
        "result": one.result,
        "alarms": said,
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.sown", description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder that holds a folder per repository")
    parser.add_argument("--files", type=int, default=2, help="how many files of a repository (2)")
    parser.add_argument("--half", choices=HALVES, default="", help="one half only")
    parser.add_argument(
        "--repository", default="", metavar="TEXT", help="only repositories whose name contains this"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only edits whose name contains this")
    parser.add_argument("--verdict", choices=("bug", "safe"), default="", help="bugs or safe edits only")
    parser.add_argument(
        "--part", type=int, default=0, help="which part of the repositories, of so many `--parts`"
    )
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument(
        "--log", type=argparse.FileType("w"), default=None, help="a file that gets a line per edit"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
