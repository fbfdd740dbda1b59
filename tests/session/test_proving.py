"""The loop that proves a finding: which programs it runs, when it stops, what it tells, and that it can be cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from gradsight.analysis import analyze
from gradsight.model.source import Source
from gradsight.probe.outcome import Cancelled, CouldNotRun, Observed, Outcome
from gradsight.probe.request import ProbeRequest
from gradsight.session.evidence import ProbeEvidence
from gradsight.session.probe_options import ProbeOptions
from gradsight.session.proving import ProofOutcome, Prover, Subject, findings_on, program_of

Result = TypeVar("Result")
PATH = "/nowhere/net.py"
LIBRARY = """import torch


def scaled(x):
    y = torch.exp(x * torch.ones(3, requires_grad=True))
    y *= 2
    y.sum().backward()
"""
SCRIPT = "import torch\n\nx = torch.ones(3, requires_grad=True)\ny = x.exp()\ny *= 2\ny.sum().backward()\n"


def saw(text: str, *, came: bool = True, fault: bool = False) -> Outcome:
    """How a program ended that was cut out of this text: whether it came to the finding, and whether it failed there."""
    lines = list(range(1, text.count("\n") + 1)) if came else []
    [finding] = analyze(Source(PATH, text)).findings
    place = {
        "location": {"row": finding.span.line, "column": 1},
        "end_location": {"row": finding.span.line, "column": 2},
    }
    told = {
        "code": finding.code,
        "message": "it fails",
        "severity": "error",
        "certainty": "certain",
        "filename": PATH,
        "related": [],
        "evidence": {"torch": "no"},
        **place,
    }
    at = {step.role: [PATH, step.span.line] for step in finding.related}
    wrote = {"filename": PATH, "line": finding.span.line, "wrote": True, "first": 1, "last": 1}
    made = [[*at["saved"], "Exp", 0, 0]]
    report: dict[str, Any] = {
        "touches": [[wrote]] if came and not fault else [],
        "touched_makers": [[at["saved"]]] if came and not fault else [],
        "finished": [{"needed": [at["needed"]], "made": made, "first": 2, "last": 2, "exact": True}]
        if came and not fault
        else [],
        "faults": [told] if fault else [],
        "error": None,
        "visited": {PATH: lines},
        "torch": "2.13.0+cpu",
        "backwards": 1,
    }
    return Observed(report)


class Stage:
    """Runs nothing: the outcomes are given, and what was asked for is kept."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self.outcomes = list(outcomes)
        self.requests: list[ProbeRequest] = []
        self.titles: list[str] = []
        self.heard: list[list[ProbeEvidence]] = []
        self.prover = Prover(self.run, self.aside, self.heard.append)

    async def run(self, request: ProbeRequest, title: str) -> Outcome:
        self.requests.append(request)
        self.titles.append(title)
        return self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]

    def aside(self, work: Callable[[], Result]) -> Awaitable[Result]:
        async def done() -> Result:
            return work()

        return done()

    def prove(self, text: str) -> ProofOutcome:
        source = Source(PATH, text)
        [finding] = analyze(source).findings
        subject = Subject(source, program_of(source, ProbeOptions("python3"), None), analyze)
        return asyncio.run(self.prover.prove(subject, finding, "Proving"))


def test_it_stops_at_the_first_program_that_confirms() -> None:
    stage = Stage([saw(LIBRARY, came=False), saw(LIBRARY, fault=True)])
    proof = stage.prove(LIBRARY)
    assert (proof.verdict, proof.runs, proof.is_decided) == ("confirmed", 2, True)
    assert stage.titles == ["Proving", "Proving, attempt 2"]
    assert [judged[0].verdict for judged in stage.heard] == ["not-reached", "confirmed"]


def test_a_program_with_inputs_of_ours_refutes_nothing_for_good() -> None:
    proof = Stage([saw(LIBRARY)]).prove(LIBRARY)
    assert proof.verdict == "refuted"
    assert proof.runs > 1
    assert not proof.is_decided


def test_the_programs_own_inputs_refute_at_once() -> None:
    proof = Stage([saw(SCRIPT)]).prove(SCRIPT)
    assert (proof.verdict, proof.runs, proof.is_decided) == ("refuted", 1, True)


REBOUND = SCRIPT.replace("y = x.exp()", "z = x * 0\nz = x + z\ny = z.exp()")


def test_a_program_that_lacks_a_value_refutes_nothing_before_one_that_has_it() -> None:
    stage = Stage([saw(REBOUND), saw(REBOUND, fault=True)])
    proof = stage.prove(REBOUND)
    assert (proof.verdict, proof.runs, proof.is_decided) == ("confirmed", 2, True)
    assert [judged[0].verdict for judged in stage.heard] == ["confirmed"]
    both = Stage([saw(REBOUND)])
    proof = both.prove(REBOUND)
    assert (proof.verdict, proof.runs, proof.is_decided) == ("refuted", 2, True)
    assert len(both.heard) == 1


ELSEWHERE = """import torch


def finish(y):
    y.sum().backward()


x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= 2
if x.sum() > 5:
    finish(y)
"""


def test_inputs_of_ours_refute_nothing_about_values_that_the_program_makes_elsewhere() -> None:
    stage = Stage([])

    async def run(request: ProbeRequest, title: str) -> Outcome:
        return saw(ELSEWHERE, came="finish(torch" in (request.text or ""))

    stage.prover = Prover(run, stage.aside, stage.heard.append)
    proof = stage.prove(ELSEWHERE)
    told = [judged[0] for judged in stage.heard]
    assert {one.verdict for one in told} == {"undecided", "not-reached"}
    assert (proof.verdict, proof.is_decided) == ("not-reached", False)
    assert any("made elsewhere" in one.why for one in told)


def test_a_later_program_that_comes_nowhere_takes_nothing_back() -> None:
    proof = Stage([saw(LIBRARY), saw(LIBRARY, came=False)]).prove(LIBRARY)
    assert proof.verdict == "refuted"
    assert not proof.is_decided


def test_the_program_that_has_decided_is_run_again_while_the_text_is_the_same() -> None:
    stage = Stage([saw(LIBRARY, came=False), saw(LIBRARY, fault=True)])
    stage.prove(LIBRARY)
    again = stage.prove(LIBRARY)
    assert (again.verdict, again.runs) == ("confirmed", 1)
    assert stage.requests[1] == stage.requests[2]
    changed = LIBRARY.replace("*= 2", "*= 3")
    stage.outcomes = [saw(changed, fault=True)]
    stage.prove(changed)
    assert "*= 3" in (stage.requests[3].text or "")


def test_a_cancelled_program_ends_the_proof_and_says_nothing() -> None:
    stage = Stage([Cancelled()])
    proof = stage.prove(LIBRARY)
    assert isinstance(proof.outcome, Cancelled)
    assert (proof.evidence, proof.runs, stage.heard) == (None, 1, [])


def test_where_nothing_can_be_run_nothing_is_tried_again() -> None:
    proof = Stage([CouldNotRun("no torch", "torch")]).prove(LIBRARY)
    assert isinstance(proof.outcome, CouldNotRun)
    assert proof.runs == 1


def test_a_minimal_program_may_go_further_than_a_whole_one() -> None:
    stage = Stage([saw(SCRIPT, fault=True)])
    stage.prove(SCRIPT)
    assert stage.requests[0].steps > ProbeOptions().steps


def test_a_finding_is_found_by_its_line_before_the_lines_of_its_trail() -> None:
    findings = analyze(Source(PATH, SCRIPT)).findings
    assert [each.code for each in findings_on(findings, 5)] == ["GS101"]
    assert [each.code for each in findings_on(findings, 4)] == ["GS101"]
    assert findings_on(findings, 1) == []
