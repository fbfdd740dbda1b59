"""`python -m gradsight_dev.fuzz.families`: write programs of every family, ask torch and the engine, count."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gradsight.probe.standby import Standby
from gradsight_dev.fuzz.campaign import prepare
from gradsight_dev.fuzz.families import KINDS
from gradsight_dev.fuzz.families.answers import Answer, by_check, by_run
from gradsight_dev.fuzz.families.case import examine, written
from gradsight_dev.fuzz.families.summary import Tally


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when the bars are met."""
    options = _parser().parse_args(arguments)
    kinds = [kind for kind in KINDS if not options.only or options.only in f"{kind.family} {kind.name}"]
    if not kinds:
        print(f"no kind is called so; there are: {', '.join(kind.name for kind in KINDS)}", file=sys.stderr)
        return 2
    prepare()
    tally, standby = Tally(), Standby()
    answer = by_run(standby) if options.run else by_check
    try:
        if options.program is not None:
            _show(options.program, answer)
            return 0
        for seed in range(options.seed, options.seed + options.count):
            # Seeds belong to a kind, so that a program is the same whichever kinds were asked for.
            tally.add(examine(seed * len(KINDS) + KINDS.index(kinds[seed % len(kinds)]), answer))
    finally:
        standby.drop()
    print("\n".join(tally.lines(verbose=options.verbose)))
    return 0 if tally.meets_bars else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.fuzz.families", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many programs (1000)")
    parser.add_argument("--seed", type=int, default=1, help="where to begin")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only kinds whose family or name has this text"
    )
    parser.add_argument(
        "--program", type=int, metavar="SEED", help="show one program and what is said about it"
    )
    parser.add_argument("--run", action="store_true", help="ask runs of the programs instead of the engine")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="name every miss, alarm and discarded program"
    )
    return parser


def _show(seed: int, answer: Answer) -> None:
    kind, hazard, twin = written(seed)
    for version in (hazard, twin):
        for path, text in version.texts.items():
            print(f"# {path}")
            for number, line in enumerate(text.splitlines(), 1):
                print(f"{number:4}{'!' if number in version.causes[path] else ' '} {line}")
    case = examine(seed, answer)
    print(f"\n{kind.family}: {kind.name}, expected {kind.effect}: {case.result} {case.detail}")
    for alarm in case.alarms:
        print(f"alarm: {alarm}")


if __name__ == "__main__":
    sys.exit(main())
