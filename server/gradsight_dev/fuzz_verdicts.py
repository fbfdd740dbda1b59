"""`python -m gradsight_dev.fuzz_verdicts`: proves the findings of random programs, and asks torch whether each verdict is true.

One warm interpreter runs all programs.  Each finding gets two verdicts: one from a run of the whole program, as *Run* gives it,
and one from the minimal program that is cut out around it, as *Prove* gives it.  The oracle of the random tester, which
runs the program on all its paths in this process and compares gradients with those of untouched saved tensors, says what is true.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from gradsight.analysis import Analyser
from gradsight.model import Finding, Settings, Source
from gradsight.model.report import Report
from gradsight.probe.outcome import Outcome
from gradsight.probe.request import ProbeRequest
from gradsight.probe.standby import Standby
from gradsight.rules import rule_of
from gradsight.session.probe_options import ProbeOptions
from gradsight.session.proving import Prover, Subject, judged_by, program_of
from gradsight_dev.fuzz.campaign import prepare
from gradsight_dev.fuzz.compare import explains, stands_right
from gradsight_dev.fuzz.grammar import generate
from gradsight_dev.fuzz.oracle import Truth, judge
from gradsight_dev.fuzz.oracle.coverage import lines_of_uncalled
from gradsight_dev.fuzz.oracle.truth import BY_NAME, FAMILIES
from gradsight_dev.fuzz.program import Program

DECIDED = ("confirmed", "refuted")
JUDGED = (
    *(code for family in FAMILIES if family.promised for code in family.codes),
    *BY_NAME["silent"].codes,
)
LOUD = ("error", "warning")
TIMEOUT = 20.0
REPORTED = 50
"""A long run tells how far it is after so many programs."""
Happens = Literal["yes", "no", "unknown"]
Result = TypeVar("Result")


@dataclass(slots=True)
class Verdicts:
    """What came of the findings that were weighed."""

    programs: int = 0
    weighed: int = 0
    decided: int = 0
    hidden: int = 0
    """Findings behind an error of another kind, about which torch has no say: no path gets there, nor does the minimal program."""
    left: Counter[str] = field(default_factory=Counter)
    """Findings that nothing decided, by rule and by what was said instead."""
    wrong: list[str] = field(default_factory=list)

    def add(self, name: str, code: str, verdicts: Sequence[str], happens: Happens) -> None:
        """Hold the verdicts about one finding against what torch does."""
        self.weighed += 1
        self.decided += any(verdict in DECIDED for verdict in verdicts)
        if not any(verdict in DECIDED for verdict in verdicts):
            self.left[f"{code} {verdicts[-1]}"] += 1
        for verdict in verdicts:
            if (verdict, happens) in (("confirmed", "no"), ("refuted", "yes")):
                self.wrong.append(
                    f"{name}: {verdict}, and it {'does' if happens == 'yes' else 'does not'} happen"
                )

    def __str__(self) -> str:
        share = 100 * self.decided / max(1, self.weighed)
        return (
            f"{self.programs} programs, {self.weighed} findings weighed, {self.decided} decided ({share:.1f} %), "
            f"{len(self.wrong)} wrong; {self.hidden} more stand behind another error"
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m gradsight_dev.fuzz_verdicts", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000, help="how many programs to run")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    given = parser.parse_args(arguments)
    found = campaign(given.start, given.count, given.seconds)
    print(found)
    for what, count in found.left.most_common():
        print(f"not decided: {what}, {count} times")
    for text in found.wrong:
        print(text)
    return 1 if found.wrong else 0


def campaign(start: int, count: int, seconds: float = float("inf")) -> Verdicts:
    """Prove the findings of so many programs that have one."""
    prepare()
    found, standby, seed, started = Verdicts(), Standby(), start, time.monotonic()
    try:
        while found.programs < count and time.monotonic() - started < seconds:
            before = found.programs
            weigh(generate(seed), found, standby)
            seed += 1
            if found.programs != before and found.programs % REPORTED == 0:
                print(f"{found} (seeds {start} to {seed - 1}) {found.wrong}", flush=True)
    finally:
        standby.drop()
    return found


def weigh(program: Program, found: Verdicts, standby: Standby) -> None:
    """Prove the findings of one program."""
    source, settings, analyser = Source(program.path, program.text), Settings(), Analyser()

    def check(changed: Source) -> Report:
        return analyser.analyze(changed, settings, None)

    findings = [
        finding
        for finding in check(source).findings
        if finding.severity in LOUD and finding.code.startswith(JUDGED)
    ]
    if not findings:
        return
    truth = judge(program.text, program.path)
    if truth.verdict == "foreign":
        return
    uncalled = lines_of_uncalled(program.text, program.path)
    findings = [finding for finding in findings if finding.span.line not in uncalled]
    if not findings:
        return
    found.programs += 1
    request = program_of(source, ProbeOptions(sys.executable, timeout=TIMEOUT, steps=0), None)
    by_run = verdicts_of_run(standby.run(request), findings, source)
    subject = Subject(source, request, check)
    for finding in findings:
        proof = asyncio.run(prover(standby).prove(subject, finding, "proof"))
        where = f"seed {program.seed}: {finding.code} in line {finding.span.line}"
        verdicts = [by_run.get((finding.code, finding.span.line), "not-reached"), proof.verdict]
        truly = happens(finding, truth)
        if truly == "unknown" and proof.verdict in DECIDED:
            truly = happens(finding, judge(proof.attempt.text, program.path))
        if truly == "unknown" and truth.verdict == "raises":
            found.hidden += 1
        else:
            found.add(where, finding.code, verdicts, truly)


def verdicts_of_run(
    outcome: Outcome, findings: Sequence[Finding], source: Source
) -> dict[tuple[str, int], str]:
    """What a run of the whole program says about each finding."""
    return {
        (each.finding.code, each.finding.span.line): each.verdict
        for each in judged_by(outcome, findings, source, is_cut=True)
    }


def prover(standby: Standby) -> Prover:
    """A prover whose programs are children of the warm interpreter."""

    async def run(request: ProbeRequest, _title: str) -> Outcome:
        return standby.run(request)

    def aside(work: Callable[[], Result]) -> Awaitable[Result]:
        async def done() -> Result:
            return work()

        return done()

    return Prover(run, aside)


def happens(finding: Finding, truth: Truth) -> Happens:
    """Whether torch does what a finding says, on any path of its program."""
    told = [failure for failure in truth.failures if explains(finding, failure)]
    if any(stands_right(finding, failure) for failure in told):
        return "yes"
    if finding.code.startswith(BY_NAME["silent"].codes) and finding.span.line in truth.unseen:
        return "yes"
    # Behind an error nothing runs: whether a second fault waits there is not known.
    if truth.verdict == "raises" or not (rule_of(finding.code).torch_raises or truth.verdict == "exact"):
        return "unknown"
    return "no" if rule_of(finding.code).torch_raises or is_of_silent(finding) else "unknown"


def is_of_silent(finding: Finding) -> bool:
    """Whether it speaks of a gradient that is computed from changed values."""
    return finding.code.startswith(BY_NAME["silent"].codes)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
