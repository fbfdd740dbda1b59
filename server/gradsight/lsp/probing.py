"""Probes from the editor: a file, a function, one finding, the graph around it; with progress, and cancelled three ways.

A probe runs only because the user asked for it, and never where the editor says that the code is not trusted.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from gradsight.lsp import diagnostics, verifying
from gradsight.lsp.lenses import LensCommand
from gradsight.lsp.places import Spot, locate_at_path, spot_of
from gradsight.lsp.probe_requests import (
    Refused,
    cell_at,
    finding_at,
    findings_of,
    function_at,
    request_of,
    run_shown,
    subject_of,
    trusted_spot,
)
from gradsight.lsp.wire_types import types
from gradsight.model.finding import Finding
from gradsight.model.source import Span
from gradsight.session import run_details
from gradsight.session.documents import Document

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer
    from gradsight.probe.outcome import Outcome
    from gradsight.session.evidence import ProbeEvidence
    from gradsight.session.proving import ProofOutcome, Prover

Answer = dict[str, Any]
Result = TypeVar("Result")
QUICK = 5.0
MOST_PROOFS = 5
RUNS = "GradSight: run this file with your torch, and see what happens to the gradients"


def register(server: GradSightServer) -> None:
    """Offer the commands, the lens, and the cancel button of a progress bar."""
    for name, handler in COMMANDS.items():
        server.add_command(name, handler)
    server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)(cancel_progress)
    server.lens_commands += [
        LensCommand("Run Function", "gradsight.probeFunction", ("function",), f"{RUNS} in this function"),
        LensCommand("Run File", "gradsight.probeFile", ("main",), f"{RUNS} in it"),
        LensCommand("Run Cell", "gradsight.probeCell", ("cell",), f"{RUNS} in this cell"),
    ]


async def probe_file(ls: GradSightServer, uri: str, line: int = 0) -> Answer:
    """Run the whole file and judge everything that was found in it."""
    spot = trusted_spot(ls, uri)
    findings = await findings_of(ls, spot)
    return await _judged(ls, spot, findings, f"Running {_name(spot.document)}")


async def probe_function(ls: GradSightServer, uri: str, line: int = 0) -> Answer:
    """Run the file and judge what passes through the function at a line."""
    spot = trusted_spot(ls, uri)
    first, last = function_at(spot.document, line + 1 + spot.offset)
    findings = _passing(await findings_of(ls, spot), first, last)
    name = spot.document.line_name
    answer = await _judged(ls, spot, findings, f"Running the function at {name(first)}")
    # A file that never calls the function says nothing about it: then inputs are made up.
    source, book = spot.document.source, ls.session.evidence
    missed = [each for each in findings if book.verdict_on(source, each) == "not-reached"]
    if not missed or answer["outcome"] not in ("clean", "faults"):
        return answer
    for finding in missed[:MOST_PROOFS]:
        proof = await _prove(ls, spot, finding, f"Proving {finding.code}")
    return _answer(ls, findings, proof.outcome, _ran(ls, spot.document, proof))


async def probe_cell(ls: GradSightServer, uri: str, line: int = 0) -> Answer:
    """Run everything up to the end of the cell at a line, and judge what passes through the cell."""
    spot = trusted_spot(ls, uri)
    first, last = cell_at(spot, line + 1 + spot.offset)
    findings = _passing(await findings_of(ls, spot), first, last)
    text = "\n".join(spot.document.source.text.split("\n")[:last]) + "\n"
    title = f"Running the file to the end of {spot.document.line_name(last)}"
    return await _judged(ls, spot, findings, title, text)


def _passing(findings: list[Finding], first: int, last: int) -> list[Finding]:
    """The findings that some of these lines have a part in: who saved a value, who overwrote it, who needs it."""
    return [
        each
        for each in findings
        if any(
            first <= span.line <= last
            for span in (each.span, *(step.span for step in each.related if step.path == each.path))
        )
    ]


async def prove_finding(ls: GradSightServer, uri: str, line: int = 0, code: str = "") -> Answer:
    """Run a minimal program around the finding at a line, so that nothing else of the file happens."""
    spot = trusted_spot(ls, uri)
    finding = await finding_at(ls, spot, line, code)
    proof = await _prove(ls, spot, finding, f"Proving {finding.code}")
    answer = _answer(ls, [finding], proof.outcome, _ran(ls, spot.document, proof))
    if proof.verdict == "confirmed" and _was_quick(proof.outcome):
        await verifying.try_fixes(ls, spot.document, finding, proof.attempt.text)
        answer["summary"] += verifying.sentence_about(ls, spot.document, finding)
    return answer


async def verify_fix(ls: GradSightServer, uri: str, line: int = 0, code: str = "", title: str = "") -> Answer:
    """Try the fix with this title (or all there are) of the finding at a line, in a program that shows it."""
    spot = trusted_spot(ls, uri)
    finding = await finding_at(ls, spot, line, code)
    if not await verifying.has_fix(ls, spot.document, finding, title):
        raise Refused("there is no fix to try here")
    text = spot.document.source.text
    attempt = _prover(ls, spot.document).decided_by(finding, text)
    if attempt is None:
        proof = await _prove(ls, spot, finding, f"Proving {finding.code}")
        attempt = proof.attempt if proof.is_decided else None
    shown = attempt.text if attempt is not None else text
    return verifying.answer(await verifying.try_fixes(ls, spot.document, finding, shown, title))


def _prover(ls: GradSightServer, document: Document) -> Prover:
    """Proves findings of a document: with progress, beside the conversation, and what it sees is shown at once."""
    from gradsight.session.proving import Prover
    from gradsight.session.schedule import Urgency

    def aside(work: Callable[[], Result]) -> Awaitable[Result]:
        return ls.session.worker.submit(Urgency.AWAITED, work)

    def hear(judged: list[ProbeEvidence]) -> None:
        _publish(ls, document, judged)

    return Prover(run_shown(ls), aside, hear, ls.session.decided)


async def _prove(
    ls: GradSightServer, spot: Spot, finding: Finding, title: str, has_graph: bool = False
) -> ProofOutcome:
    document = spot.document
    return await _prover(ls, document).prove(subject_of(ls, document), finding, title, has_graph)


async def repro(ls: GradSightServer, uri: str, line: int = 0, code: str = "") -> Answer:
    """A minimal program that shows the finding at a line: the one that was proven, or the most plausible one."""
    spot = spot_of(ls.session, uri)
    if spot is None:
        raise Refused("open the file first")
    document = spot.document
    finding = await finding_at(ls, spot, line, code)
    attempt = await _prover(ls, document).program_for(subject_of(ls, document), finding)
    return {"text": f"# {finding.code}: {finding.message}\n{attempt.snippet}"}


async def cancel_probe(ls: GradSightServer) -> Answer:
    """Stop the probe that runs."""
    return {"cancelled": ls.session.prober.cancel()}


async def graph(ls: GradSightServer, uri: str, line: int = 0, code: str = "") -> Answer:
    """The autograd graph around the finding at a line, as recorded by a run."""
    from gradsight.lsp.graph_answer import drawn
    from gradsight.probe.document import document_of
    from gradsight.session.graph_folding import folded
    from gradsight.session.graphs import draw
    from gradsight.session.verdicts import fault_finding, same_fault

    spot = trusted_spot(ls, uri)
    finding = await finding_at(ls, spot, line, code)
    proof = await _prove(ls, spot, finding, f"Recording the graph of {finding.code}", has_graph=True)
    outcome, python = proof.outcome, request_of(ls, spot.document).python
    report = getattr(outcome, "report", None) or {}
    faults = [fault_finding(fault) for fault in document_of(outcome)["faults"]]
    fault = next((each for each in faults if same_fault(finding, each)), None)
    if fault is None or not report.get("graph"):
        return {"problem": f"No graph to draw: {_summary(ls, [finding], outcome, python)}"}
    raw = document_of(outcome)["faults"][faults.index(fault)]
    operator = str(raw["evidence"].get("operator", ""))
    drawing = folded(draw(report["graph"], fault, operator, line_reader(ls), line_namer(ls)))
    return drawn(drawing, lambda path, line: _link(ls, path, line))


def cancel_progress(ls: GradSightServer, params: types.WorkDoneProgressCancelParams) -> None:
    """The user pressed the cancel button of the progress bar."""
    if params.token == ls.progress_shown:
        ls.session.prober.cancel()


COMMANDS: dict[str, Callable[..., Any]] = {
    "gradsight.probeFile": probe_file,
    "gradsight.probeFunction": probe_function,
    "gradsight.probeCell": probe_cell,
    "gradsight.proveFinding": prove_finding,
    "gradsight.verifyFix": verify_fix,
    "gradsight.cancelProbe": cancel_probe,
    "gradsight.graph": graph,
    "gradsight.repro": repro,
}


async def _judged(
    ls: GradSightServer,
    spot: Spot,
    findings: list[Finding],
    title: str,
    text: str | None = None,
) -> Answer:
    """Run the file (or the beginning of it) and publish what it showed about these findings."""
    from gradsight.session.proving import judged_by, with_text

    request = request_of(ls, spot.document)
    if text is not None:
        request = with_text(request, text)
    source = spot.document.source
    outcome = await run_shown(ls)(request, title)
    if ls.session.open.documents.get(spot.document.key) is spot.document:
        report = getattr(outcome, "report", None) or {}
        torch, facts = str(report.get("torch") or ""), report.get("facts") or ()
        ls.session.evidence.observed.record(source.path, source.text, facts, torch)
    _publish(ls, spot.document, judged_by(outcome, findings, source))
    return _answer(ls, findings, outcome, _ran(ls, spot.document))


def _was_quick(outcome: Outcome) -> bool:
    """Whether a program is short enough to be run a few times more without being asked."""
    report = getattr(outcome, "report", None) or {}
    return float(report.get("seconds") or QUICK) < QUICK


def _publish(ls: GradSightServer, document: Document, judged: list[ProbeEvidence]) -> None:
    """Keep what a run showed, and let the client see it; nobody looks at a document that was closed meanwhile."""
    if ls.session.open.documents.get(document.key) is document:
        ls.session.evidence.record(document.path, judged)
        diagnostics.show(ls, document, set())
        ls.refresh()


def _ran(ls: GradSightServer, document: Document, proof: ProofOutcome | None = None) -> run_details.Ran:
    """How a document was run; a proof ran a program of its own."""
    request = request_of(ls, document)
    if proof is not None:
        what = f"a minimal program around {proof.finding.code}, made from {_name(document)}"
        return run_details.Ran(request.python, what, program=proof.attempt.snippet)
    what = request.script or _name(document)
    return run_details.Ran(request.python, what, request.arguments, request.directory or "", request.launcher)


def _answer(ls: GradSightServer, findings: list[Finding], outcome: Outcome, ran: run_details.Ran) -> Answer:
    from gradsight.probe.document import document_of

    def link(path: str, line: int) -> str:
        place = _link(ls, path, line)
        return f"{place['uri']}#L{place['line']}" if place["uri"].startswith("file:") else ""

    document, shown = document_of(outcome), _shown(ls, findings)
    summary, output = _summary(ls, findings, outcome, ran.python), str(getattr(outcome, "output", ""))
    return {
        "summary": summary,
        "outcome": document["outcome"],
        "verdicts": [
            {
                "code": each.code,
                "line": each.span.line,
                "verdict": str(each.data.get("verdict", "not-reached")),
            }
            for each in shown
        ],
        "graph": _drawable(ls, findings),
        "output": output[-4000:],
        "details": run_details.page(document, shown, summary, ran, output, line_namer(ls), link),
        "log": run_details.log_entry(document, shown, summary, ran, output, line_namer(ls)),
        "observed": bool((getattr(outcome, "report", None) or {}).get("facts")),
    }


def _drawable(ls: GradSightServer, findings: list[Finding]) -> list[Any] | None:
    """The arguments that ask for the graph of the first confirmed fault which has one to show."""
    from gradsight.rules import rule_of

    for each in _shown(ls, findings):
        if rule_of(each.code).is_drawable and each.data.get("verdict") == "confirmed":
            place = _link(ls, each.path, each.span.line)
            return [place["uri"], place["line"] - 1, each.code]
    return None


def _shown(ls: GradSightServer, findings: list[Finding]) -> list[Finding]:
    """Findings as they appear now that they are judged."""
    keys = {(each.path, each.code, each.span.line) for each in findings}
    documents = ls.session.open.documents.values()
    return [
        each
        for document in documents
        for each in ls.session.findings_of(document)
        if (each.path, each.code, each.span.line) in keys
    ]


def _summary(ls: GradSightServer, findings: list[Finding], outcome: Outcome, python: str) -> str:
    """One sentence about a run."""
    from gradsight.probe.document import document_of

    document = document_of(outcome)
    torch = str(document["torch"] or "").split("+")[0]
    error = document["error"]
    if document["outcome"] == "could-not-run":
        return f"GradSight: could not run it with {python}: {error['message']}"
    said = run_details.sentence(document, findings, _shown(ls, findings), line_namer(ls))
    return f"GradSight: {said}{f' (torch {torch})' if torch else ''}"


def _name(document: Document) -> str:
    return os.path.basename(document.path) or "the file"


def line_reader(ls: GradSightServer) -> Callable[[str, int], str]:
    """The text of a line of any file, as the editor shows it."""

    def read(path: str, line: int) -> str:
        document = ls.session.open.at_path(path)
        if document is not None:
            return document.line_text(line) if line else ""
        source = ls.session.files.source_at(path) if path else None
        rows = source.text.split("\n") if source is not None else []
        return rows[line - 1] if 0 < line <= len(rows) else ""

    return read


def line_namer(ls: GradSightServer) -> Callable[[str, int], str]:
    """How a line of any file is spoken of: by its cell in a notebook that is open."""

    def name(path: str, line: int) -> str:
        document = ls.session.open.at_path(path)
        return document.line_name(line) if document is not None else f"line {line}"

    return name


def _link(ls: GradSightServer, path: str, line: int) -> Answer:
    """Where a line is to the client: address, and line counted from 1."""
    if not path or not line:
        return {"uri": "", "line": 0}
    uri, place = locate_at_path(ls.session, path, Span(line, 0, line, 0), ls.client.encoding)
    return {"uri": uri, "line": place.start.line + 1}
