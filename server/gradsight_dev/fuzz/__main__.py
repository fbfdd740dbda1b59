"""`python -m gradsight_dev.fuzz`: generate programs, ask torch and the engine, report and shrink disagreements."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gradsight_dev.fuzz.campaign import prepare, run_campaign
from gradsight_dev.fuzz.case import Case, examine, weigh
from gradsight_dev.fuzz.compare import Comparison
from gradsight_dev.fuzz.engine import findings_of
from gradsight_dev.fuzz.grammar import BY_NAME
from gradsight_dev.fuzz.keep import claim_of, keep, renew_claims
from gradsight_dev.fuzz.oracle import judge
from gradsight_dev.fuzz.shrink import shrink
from gradsight_dev.fuzz.summary import Summary, as_data, as_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when the bars are met or only torch was asked, 1 when they are not."""
    options = _parser().parse_args(arguments)
    with_engine = not options.torch_only
    if options.renew_claims:
        prepare()
        for path in renew_claims():
            print(f"renewed {path.name}")
        return 0
    if options.program is not None:
        return _show_program(options.program, with_engine, options.shrink)
    unknown = [kind for kind in options.kinds if kind not in BY_NAME]
    if unknown:
        print(f"unknown kinds: {', '.join(unknown)}; there are: {', '.join(BY_NAME)}", file=sys.stderr)
        return 2
    summary = Summary()
    progress = _Progress(options.count)
    for case in run_campaign(
        options.seed,
        options.count,
        kinds=options.kinds,
        jobs=options.jobs,
        with_engine=with_engine,
        on_batch=progress.advance,
    ):
        summary.add(case)
    progress.finish()
    print(as_text(summary, with_engine=with_engine))
    if options.report:
        Path(options.report).write_text(json.dumps(as_data(summary), indent=1) + "\n", encoding="utf-8")
    if options.shrink:
        _shrink_all(summary, options.shrink_most)
    return 0 if not with_engine or summary.meets_bars else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="how many programs (5000)")
    parser.add_argument("--seed", type=int, default=1, help="the first seed; program i has seed SEED + i")
    parser.add_argument("--kinds", nargs="*", default=[], help="only these kinds of programs")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--report", default="", help="write counts and disagreements to this JSON file")
    parser.add_argument(
        "--shrink", action="store_true", help="shrink disagreements and keep them as fixtures"
    )
    parser.add_argument("--shrink-most", type=int, default=12, help="at most this many different ones (12)")
    parser.add_argument(
        "--program", type=int, default=None, metavar="SEED", help="show one program and the verdicts on it"
    )
    parser.add_argument("--renew-claims", action="store_true", help="ask torch again about the kept programs")
    parser.add_argument("--torch-only", action="store_true", help="do not ask the engine")
    return parser


def _show_program(seed: int, with_engine: bool, shrinking: bool) -> int:
    prepare()
    case = examine(seed, with_engine)
    text = case.program.text
    if shrinking and case.comparison is not None:
        text = _shrunk(case, case.comparison)
    for number, line in enumerate(text.splitlines(), 1):
        print(f"{number:4} {line}")
    truth = judge(text, case.program.path)
    print(f"\nseed {seed}, {case.program.kind}, {truth.paths} paths\ntorch: {claim_of(truth)} {truth.note}")
    for failure in truth.failures:
        print(f"       {failure.message}")
    if with_engine:
        for finding in findings_of(text, case.program.path):
            print(
                f"engine: line {finding.span.line} {finding.code} {finding.severity} {finding.certainty}: {finding.message}"
            )
        comparison, crash = weigh(text, case.program.path, truth)
        print(
            crash or f"{comparison.result if comparison else ''}: {comparison.detail if comparison else ''}"
        )
    return 0


def _shrink_all(summary: Summary, most: int) -> None:
    """Shrink one disagreement of each sort, then a second of each, while there is room."""
    ranked: list[tuple[int, int, Case]] = []
    met: Counter[tuple[str, str]] = Counter()
    for order, case in enumerate(summary.disagreements):
        assert case.comparison is not None
        about = (case.comparison.result, case.comparison.about)
        ranked.append((met[about], order, case))
        met[about] += 1
    for _, _, case in sorted(ranked, key=lambda one: one[:2])[:most]:
        assert case.comparison is not None
        story = f"{case.comparison.result} {case.comparison.about} {case.program.kind}"
        path = keep(_shrunk(case, case.comparison), story)
        print(f"kept {path.name} (seed {case.program.seed})")


def _shrunk(case: Case, comparison: Comparison) -> str:
    """A small program with the same disagreement."""

    def disagrees_alike(text: str) -> bool:
        truth = judge(text)
        if truth.verdict != case.truth.verdict:
            return False
        other, _ = weigh(text, "<program>", truth)
        return other is not None and (other.result, other.about) == (comparison.result, comparison.about)

    return shrink(case.program.text, disagrees_alike)


class _Progress:
    """A counter on a terminal; nothing elsewhere."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0

    def advance(self, count: int) -> None:
        self.done += count
        if sys.stderr.isatty():
            print(f"\r{self.done}/{self.total}", end="", file=sys.stderr, flush=True)

    def finish(self) -> None:
        if sys.stderr.isatty():
            print("\r", end="", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
