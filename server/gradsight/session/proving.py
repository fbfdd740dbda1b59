"""Proves findings: programs are run one after the other until torch has decided about each.

Nothing here knows who asks.  *Run* runs one program under a title, tells how far it is, and ends with `Cancelled` (or an
error of its own) when the user has had enough.  *Aside* works something out without holding up whoever waits.
*Hear* is told what each program showed, before the next one starts.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from gradsight.model.finding import Finding
from gradsight.model.report import Report
from gradsight.model.source import Source
from gradsight.probe.document import document_of
from gradsight.probe.minimal import Minimal, cut_out
from gradsight.probe.outcome import Cancelled, Outcome
from gradsight.probe.request import ProbeRequest
from gradsight.session.evidence import SILENT, ProbeEvidence, Verdict
from gradsight.session.interpreters import resolve
from gradsight.session.probe_options import ProbeOptions
from gradsight.session.proofs import Attempt, Attempts, again, attempts
from gradsight.session.traces import traces_of
from gradsight.session.verdicts import judge, visited_lines

STEPS_OF_PROOFS = 10
MADE_ELSEWHERE = "it was called with made-up inputs, and the values in question are made elsewhere"
Result = TypeVar("Result")
Run = Callable[[ProbeRequest, str], Awaitable[Outcome]]
Hear = Callable[[list[ProbeEvidence]], None]
Decided = MutableMapping[tuple[str, str, int], Attempt]
"""Programs that have decided about a finding, by path, code and line."""


class Aside(Protocol):
    """Has work done beside whoever waits for it."""

    def __call__(self, work: Callable[[], Result], /) -> Awaitable[Result]: ...


@dataclass(frozen=True, slots=True)
class Subject:
    """The text whose findings are proved, the probe that would run all of it, and how a changed text is analysed."""

    source: Source
    request: ProbeRequest
    check: Callable[[Source], Report]


@dataclass(frozen=True, slots=True)
class ProofOutcome:
    """What came of trying to prove one finding."""

    finding: Finding
    evidence: ProbeEvidence | None
    """What the programs showed in the end; None if the first of them was cancelled."""
    outcome: Outcome
    """How the last program ended."""
    attempt: Attempt
    """The last program: the one that decided, if one did."""
    runs: int

    @property
    def verdict(self) -> Verdict:
        """What torch says about the finding."""
        return self.evidence.verdict if self.evidence is not None else "not-reached"

    @property
    def is_decided(self) -> bool:
        """Whether the last program is one that settles it."""
        return _decides(self.verdict, self.attempt)


@dataclass(frozen=True, slots=True)
class Prover:
    """Proves one finding after the other, and remembers which program decided."""

    run: Run
    aside: Aside
    hear: Hear = lambda judged: None
    decided: Decided = field(default_factory=dict)

    async def prove(
        self, subject: Subject, finding: Finding, title: str, has_graph: bool = False
    ) -> ProofOutcome:
        """Try one program after the other until torch has decided about a finding."""
        # A minimal program is small: it may go further than a whole one.
        steps = subject.request.steps * STEPS_OF_PROOFS
        base = replace(subject.request, graph=has_graph, steps=steps)
        programs = await self._programs(subject, finding)
        known: ProbeEvidence | None = None
        shaky: ProbeEvidence | None = None
        outcome: Outcome | None = None
        last: Attempt | None = None
        runs = 0
        while (attempt := programs.next(outcome)) is not None:
            runs += 1
            last = attempt
            numbered = title if runs == 1 else f"{title}, attempt {runs}"
            outcome = await self.run(with_text(base, attempt.text), numbered)
            if isinstance(outcome, Cancelled):
                break
            judged = judged_by(outcome, [finding], subject.source, is_cut=True)
            fresh = judged[0]
            if fresh.verdict == "refuted" and attempt.is_about_others:
                fresh = replace(fresh, verdict="undecided", why=MADE_ELSEWHERE)
                judged = [fresh]
            if not _is_shaky(fresh.verdict, attempt):
                self.hear(judged)
            if known is None or known is shaky or known.verdict in SILENT or fresh.verdict not in SILENT:
                known = fresh
            shaky = fresh if _is_shaky(fresh.verdict, attempt) else shaky
            if _decides(fresh.verdict, attempt):
                self.decided[_key(finding)] = attempt
                break
        assert outcome is not None
        assert last is not None
        return ProofOutcome(finding, known, outcome, last, runs)

    async def program_for(self, subject: Subject, finding: Finding) -> Attempt:
        """A program that shows a finding: the one that has decided about it, or the most plausible one."""
        attempt = (await self._programs(subject, finding)).next()
        assert attempt is not None
        return attempt

    def decided_by(self, finding: Finding, text: str) -> Attempt | None:
        """The program that has decided about a finding of this very text."""
        known = self.decided.get(_key(finding))
        return known if known is not None and known.is_about(text) else None

    async def _programs(self, subject: Subject, finding: Finding) -> Attempts:
        source = subject.source
        known = self.decided_by(finding, source.text)
        if known is not None:
            return again(known)

        def cut() -> Minimal | None:
            return cut_out(source, finding, subject.check)

        return attempts(await self.aside(cut), finding, source.text)


def judged_by(
    outcome: Outcome, findings: Sequence[Finding], source: Source, is_cut: bool = False
) -> list[ProbeEvidence]:
    """What a run says about findings of a text; a program that was cut out of it only tells about its finding."""
    report = getattr(outcome, "report", None) or {}
    judged = judge(
        findings, document_of(outcome), visited_lines(report), source.text, source.path, traces_of(report)
    )
    return [each for each in judged if not (is_cut and each.verdict == "seen")]


def program_of(source: Source, options: ProbeOptions, directory: str | None) -> ProbeRequest:
    """A text as a program, within the user's limits."""
    request = ProbeRequest(
        resolve(options.interpreter),
        arguments=options.args,
        directory=directory,
        steps=options.steps,
        timeout=options.timeout,
        memory=options.memory,
        environment=options.env,
        launcher=options.launcher,
        seed=0,
        touches=True,
    )
    if not os.path.isabs(source.path):
        return replace(request, code=source.text, code_name=source.path)
    return replace(request, script=source.path, text=source.text)


def with_text(request: ProbeRequest, text: str) -> ProbeRequest:
    """The same program with another text."""
    return replace(request, code=text) if request.code is not None else replace(request, text=text)


def findings_on(findings: Iterable[Finding], line: int) -> list[Finding]:
    """The findings on a line; where there is none, those whose trail passes through it."""
    findings = list(findings)
    on_it = [each for each in findings if each.span.line <= line <= each.span.end_line]
    return on_it or [
        each
        for each in findings
        if any(step.span.line == line for step in each.related if step.path == each.path)
    ]


def _decides(verdict: Verdict, attempt: Attempt) -> bool:
    """That nothing fails with inputs of ours proves little: others may still show it."""
    return verdict == "confirmed" or (
        verdict == "refuted" and not attempt.is_made_up and not _is_shaky(verdict, attempt)
    )


def _is_shaky(verdict: Verdict, attempt: Attempt) -> bool:
    """Whether a program that went right may have done so for want of what was left out of it."""
    return verdict == "refuted" and attempt.is_lossy


def _key(finding: Finding) -> tuple[str, str, int]:
    return finding.path, finding.code, finding.span.line
