"""Probes from the editor: a file, a function, one finding, the graph around it; with progress, and cancelled three ways.

A probe runs only because the user asked for it, and never where the editor says that the code is not trusted.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled

from gradsight.lsp import diagnostics
from gradsight.lsp.convert import path_of
from gradsight.lsp.lenses import LensCommand
from gradsight.lsp.places import Spot, locate_at_path, spot_of
from gradsight.lsp.progress import Reporter
from gradsight.lsp.wire_types import types
from gradsight.model.finding import Finding
from gradsight.model.source import Span
from gradsight.session.documents import Document
from gradsight.session.probe_options import ProbeOptions

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer
    from gradsight.probe.minimal import Minimal
    from gradsight.probe.outcome import Outcome, Progress
    from gradsight.probe.request import ProbeRequest

Answer = dict[str, Any]
REFUSED = -32803
UNTRUSTED = "this workspace is not trusted, and a probe runs its code"


class Refused(JsonRpcException):
    """A request that was understood and cannot be carried out; the message is for the user."""

    CODE = REFUSED
    MESSAGE = "Request Failed"

    def __init__(self, message: str) -> None:
        super().__init__(message=message, code=REFUSED)


def register(server: GradSightServer) -> None:
    """Offer the commands, the lens, and the cancel button of a progress bar."""
    for name, handler in COMMANDS.items():
        server.command(name)(handler)
    server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)(cancel_progress)
    server.lens_commands.append(LensCommand("Probe", "gradsight.probeFunction", for_main=False))
    server.lens_commands.append(LensCommand("Probe File", "gradsight.probeFile", for_functions=False))


async def probe_file(ls: GradSightServer, uri: str, line: int = 0) -> Answer:
    """Run the whole file and judge everything that was found in it."""
    spot = _spot(ls, uri)
    findings = await _findings(ls, spot)
    return await _judged(ls, spot, findings, f"Probing {_name(spot.document)}")


async def probe_function(ls: GradSightServer, uri: str, line: int = 0) -> Answer:
    """Run the file and judge what was found in the function at a line."""
    spot = _spot(ls, uri)
    first, last = _function_at(spot.document, line + 1 + spot.offset)
    findings = [each for each in await _findings(ls, spot) if first <= each.span.line <= last]
    return await _judged(ls, spot, findings, f"Probing line {first} to {last}", (first, last))


async def prove_finding(ls: GradSightServer, uri: str, line: int = 0, code: str = "") -> Answer:
    """Run a minimal program around the finding at a line, so that nothing else of the file happens."""
    spot = _spot(ls, uri)
    finding = await _finding_at(ls, spot, line, code)
    outcome, python = await _prove(ls, spot, finding, f"Proving {finding.code}")
    return _answer(ls, [finding], outcome, python)


async def _prove(
    ls: GradSightServer, spot: Spot, finding: Finding, title: str, has_graph: bool = False
) -> tuple[Outcome, str]:
    """Try one program after the other until torch has decided about a finding; the last outcome, and who ran it."""
    from gradsight.session.proofs import attempts

    document = spot.document
    base = replace(_request(ls, document), graph=has_graph)
    key = (document.path, finding.code, finding.span.line)
    known = ls.session.proven.get(key)
    if known is not None and known.is_about(document.source.text):
        programs = iter([known])
    else:
        programs = attempts(await _cut_out(ls, document, finding), finding, document.source.text)
    number = 0
    while True:
        attempt = next(programs)
        number += 1
        is_code = base.code is not None
        request = replace(base, code=attempt.text) if is_code else replace(base, text=attempt.text)
        outcome = await _run(ls, request, title + (f", attempt {number}" if number > 1 else ""))
        _publish(ls, document, [finding], outcome, is_cut=True)
        if _verdict(ls, document, finding) in ("confirmed", "refuted"):
            ls.session.proven[key] = attempt
            return outcome, base.python
        if attempt.is_last or not attempt.is_worth_another(outcome):
            return outcome, base.python


async def repro(ls: GradSightServer, uri: str, line: int = 0, code: str = "") -> Answer:
    """A minimal program that shows the finding at a line: the one that was proven, or the most plausible one."""
    from gradsight.session.proofs import attempts

    spot = spot_of(ls.session, uri)
    if spot is None:
        raise Refused("open the file first")
    finding = await _finding_at(ls, spot, line, code)
    text = spot.document.source.text
    attempt = ls.session.proven.get((spot.document.path, finding.code, finding.span.line))
    if attempt is None or not attempt.is_about(text):
        attempt = next(attempts(await _cut_out(ls, spot.document, finding), finding, text))
    return {"text": f"# {finding.code}: {finding.message}\n{attempt.snippet}"}


async def cancel_probe(ls: GradSightServer) -> Answer:
    """Stop the probe that runs."""
    return {"cancelled": ls.session.prober.cancel()}


async def graph(ls: GradSightServer, uri: str, line: int = 0, code: str = "") -> Answer:
    """The autograd graph around the finding at a line, as recorded by a run."""
    from gradsight.probe.document import document_of
    from gradsight.session.evidence import fault_finding, same_fault
    from gradsight.session.graphs import draw

    spot = _spot(ls, uri)
    finding = await _finding_at(ls, spot, line, code)
    outcome, python = await _prove(
        ls, spot, finding, f"Recording the graph of {finding.code}", has_graph=True
    )
    report = getattr(outcome, "report", None) or {}
    faults = [fault_finding(fault) for fault in document_of(outcome)["faults"]]
    fault = next((each for each in faults if same_fault(finding, each)), None)
    if fault is None or not report.get("graph"):
        return {"problem": f"No graph to draw: {_summary(ls, [finding], outcome, python)}"}
    raw = document_of(outcome)["faults"][faults.index(fault)]
    drawing = draw(report["graph"], fault, str(raw["evidence"].get("operator", "")), line_reader(ls))
    return {
        "title": drawing.title,
        "total": drawing.total,
        "nodes": [
            {**_link(ls, node.path, node.line), "id": node.id, "name": node.name, "text": node.text.strip(),
             "role": node.role, "message": node.message}
            for node in drawing.nodes.values()
        ],
        "edges": [{"from": start, "to": end, "kind": kind} for start, end, kind in drawing.edges],
    }  # fmt: skip


def cancel_progress(ls: GradSightServer, params: types.WorkDoneProgressCancelParams) -> None:
    """The user pressed the cancel button of the progress bar."""
    if params.token == ls.progress_shown:
        ls.session.prober.cancel()


COMMANDS: dict[str, Callable[..., Any]] = {
    "gradsight.probeFile": probe_file,
    "gradsight.probeFunction": probe_function,
    "gradsight.proveFinding": prove_finding,
    "gradsight.cancelProbe": cancel_probe,
    "gradsight.graph": graph,
    "gradsight.repro": repro,
}


def _spot(ls: GradSightServer, uri: str) -> Spot:
    """What is to be probed; refuses with a sentence when it cannot be."""
    spot = spot_of(ls.session, uri)
    if spot is None:
        raise Refused("open the file first: what is probed is the text that you see")
    if not _options(ls, spot.document).allowed:
        raise Refused(UNTRUSTED)
    return spot


async def _cut_out(ls: GradSightServer, document: Document, finding: Finding) -> Minimal | None:
    """The minimal program around a finding, worked out beside the conversation."""
    from gradsight.probe.minimal import cut_out
    from gradsight.session.schedule import Urgency

    source, workshop = document.source, ls.session.workshop(document)
    return await ls.session.worker.submit(Urgency.AWAITED, lambda: cut_out(source, finding, workshop.check))


def _verdict(ls: GradSightServer, document: Document, finding: Finding) -> str:
    """What is known about a finding by now."""
    shown = ls.session.findings_of(document)
    same = [each for each in shown if (each.code, each.span.line) == (finding.code, finding.span.line)]
    return str(same[0].data.get("verdict", "")) if same else ""


def _options(ls: GradSightServer, document: Document) -> ProbeOptions:
    return ls.session.options_for(document).probe


async def _findings(ls: GradSightServer, spot: Spot) -> list[Finding]:
    """What is said about the text as it is now, without what earlier probes added."""
    await ls.session.current(spot.document)
    return [each for each in ls.session.static_findings(spot.document) if each.path == spot.document.path]


async def _finding_at(ls: GradSightServer, spot: Spot, line: int, code: str) -> Finding:
    """The finding at a line, or the nearest one below the line in the same function; refuses if there is none."""
    wanted = line + 1 + spot.offset
    findings = [each for each in await _findings(ls, spot) if not code or each.code == code]
    for finding in findings:
        places = [finding.span, *(step.span for step in finding.related if step.path == finding.path)]
        if any(span.line <= wanted <= span.end_line for span in places[:1]):
            return finding
    related = [
        each
        for each in findings
        if any(step.span.line == wanted for step in each.related if step.path == each.path)
    ]
    if related:
        return related[0]
    first, last = _function_at(spot.document, wanted)
    inside = [each for each in findings if first <= each.span.line <= last]
    if len(inside) == 1:
        return inside[0]
    raise Refused("there is no finding here: put the cursor on an underlined line")


async def _judged(
    ls: GradSightServer,
    spot: Spot,
    findings: list[Finding],
    title: str,
    lines: tuple[int, int] | None = None,
) -> Answer:
    """Run the file and publish what it showed about these findings."""
    request = _request(ls, spot.document)
    outcome = await _run(ls, request, title)
    _publish(ls, spot.document, findings, outcome, lines)
    return _answer(ls, findings, outcome, request.python)


def _request(ls: GradSightServer, document: Document) -> ProbeRequest:
    """The text of a document as a program, within the user's limits."""
    from gradsight.probe.request import ProbeRequest
    from gradsight.session.interpreters import resolve

    options = _options(ls, document)
    common: dict[str, Any] = {
        "arguments": options.args,
        "directory": _directory(ls, document),
        "steps": options.steps,
        "timeout": options.timeout,
        "memory": options.memory,
        "environment": options.env,
        "launcher": options.launcher,
        "seed": 0,
    }
    text = document.source.text
    if not os.path.isabs(document.path):
        return ProbeRequest(resolve(options.interpreter), code=text, **common)
    return ProbeRequest(resolve(options.interpreter), script=document.path, text=text, **common)


def _directory(ls: GradSightServer, document: Document) -> str | None:
    """Programs are run from the folder of the workspace that they lie in."""
    folders = [path_of(folder) for folder in ls.choices.folders]
    around = [folder for folder in folders if document.path.startswith(folder.rstrip("/\\") + os.sep)]
    place = max(around, key=len, default=os.path.dirname(document.path))
    return place if os.path.isdir(place) else None


async def _run(ls: GradSightServer, request: ProbeRequest, title: str) -> Outcome:
    """Run a probe with progress; a cancelled one ends the request."""
    from gradsight.probe.outcome import Cancelled

    reporter = Reporter(ls, ls.protocol.progress_token)
    await reporter.begin(title)
    ls.progress_shown = reporter.token

    def hear(progress: Progress) -> None:
        reporter.report(_so_far(progress))

    try:
        outcome = await ls.session.prober.run(request, hear)
    except asyncio.CancelledError:
        reporter.end("cancelled")
        raise
    if isinstance(outcome, Cancelled):
        reporter.end("cancelled")
        raise JsonRpcRequestCancelled()
    reporter.end("done")
    return outcome


def _so_far(progress: Progress) -> str:
    faults = f", {progress.faults} fault{'' if progress.faults == 1 else 's'}" if progress.faults else ""
    steps = f", {progress.steps} step{'' if progress.steps == 1 else 's'}" if progress.steps else ""
    return f"{progress.backwards} backward{steps}{faults}, {progress.seconds:.1f} s"


def _publish(
    ls: GradSightServer,
    document: Document,
    findings: list[Finding],
    outcome: Outcome,
    lines: tuple[int, int] | None = None,
    is_cut: bool = False,
) -> None:
    """Keep what a run showed, and let the client see it; a program that was cut out only tells about its finding."""
    from gradsight.probe.document import document_of
    from gradsight.session.evidence import judge

    if ls.session.open.documents.get(document.key) is not document:
        return
    report = getattr(outcome, "report", None) or {}
    judged = judge(findings, document_of(outcome), _visited(report), document.source.text, document.path)
    if is_cut:
        judged = [each for each in judged if each.verdict != "seen"]
    if lines is not None:
        judged = [each for each in judged if lines[0] <= each.finding.span.line <= lines[1]]
    ls.session.evidence.record(document.path, judged)
    diagnostics.show(ls, document, set())
    ls.refresh()


def _visited(report: Any) -> dict[str, set[int]]:
    """The lines that ran, as far as the agent noticed: those with operations, and those that bound a tensor."""
    visited = {name: set(rows) for name, rows in (report.get("visited") or {}).items()}
    for fact in report.get("facts") or ():
        visited.setdefault(str(fact["filename"]), set()).add(int(fact["line"]))
    return visited


def _answer(ls: GradSightServer, findings: list[Finding], outcome: Outcome, python: str) -> Answer:
    from gradsight.probe.document import document_of

    document = document_of(outcome)
    return {
        "summary": _summary(ls, findings, outcome, python),
        "outcome": document["outcome"],
        "verdicts": [
            {
                "code": each.code,
                "line": each.span.line,
                "verdict": str(each.data.get("verdict", "not-reached")),
            }
            for each in _shown(ls, findings)
        ],
        "hasGraph": any(fault["code"] in ("GS101", "GS104", "GS106") for fault in document["faults"]),
        "output": getattr(outcome, "output", "")[-4000:],
    }


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
        return f"GradSight could not run it with {python}: {error['message']}"
    verdicts = [str(each.data.get("verdict")) for each in _shown(ls, findings)]
    faults = len(document["faults"])
    parts = []
    for verdict, word in (("confirmed", "confirmed"), ("refuted", "refuted"), ("not-reached", "not reached")):
        count = verdicts.count(verdict)
        if count:
            parts.append(word if len(findings) == 1 else f"{count} {word}")
    beyond = faults - verdicts.count("confirmed")
    if beyond > 0:
        parts.append(f"{beyond} more fault{'' if beyond == 1 else 's'} seen")
    if not parts:
        parts.append("no fault seen")
    ending = {
        "timeout": "; the time was over before its end",
        "died": f"; the program died: {error['message']}" if error else "; the program died",
        "raised": f"; the program raised {error['type']}" if error and not faults else "",
    }.get(document["outcome"], "")
    subject = f"{findings[0].code}: " if len(findings) == 1 else ""
    where = f" (torch {torch})" if torch else ""
    return f"GradSight {subject}{', '.join(parts)}{ending}{where}"


def _function_at(document: Document, line: int) -> tuple[int, int]:
    """The first and last line of the outermost function around a line; the whole file outside of functions."""
    from gradsight.session.evidence import units_of

    text = document.source.text
    for unit in units_of(text, [line]):
        if not unit.is_module:
            return unit.lines[0], unit.lines[-1]
    return 1, text.count("\n") + 1


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


def _link(ls: GradSightServer, path: str, line: int) -> Answer:
    """Where a line is to the client: address, and line counted from 1."""
    if not path or not line:
        return {"uri": "", "line": 0}
    uri, place = locate_at_path(ls.session, path, Span(line, 0, line, 0), ls.client.encoding)
    return {"uri": uri, "line": place.start.line + 1}
