"""How the editor's probes are run: what may run, within which limits, with progress, and refused with a sentence."""

from __future__ import annotations

import asyncio
import os
import re
from typing import TYPE_CHECKING

from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled

from gradsight.lsp.convert import path_of
from gradsight.lsp.places import Spot, spot_of
from gradsight.lsp.progress import Reporter
from gradsight.model.finding import Finding
from gradsight.session.documents import Document

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer
    from gradsight.probe.outcome import Outcome, Progress
    from gradsight.probe.request import ProbeRequest
    from gradsight.session.proving import Run, Subject

REFUSED = -32803
UNTRUSTED = "this workspace is not trusted, and this would run its code"


class Refused(JsonRpcException):
    """A request that was understood and cannot be carried out; the message is for the user."""

    CODE = REFUSED

    def __init__(self, message: str) -> None:
        super().__init__(message=message, code=REFUSED)


def trusted_spot(ls: GradSightServer, uri: str) -> Spot:
    """What is to be probed; refuses with a sentence when it cannot be."""
    spot = spot_of(ls.session, uri)
    if spot is None:
        raise Refused("there is no Python here to run: open the file, or choose a cell with code")
    if not spot.document.options.probe.allowed:
        raise Refused(UNTRUSTED)
    return spot


async def findings_of(ls: GradSightServer, spot: Spot) -> list[Finding]:
    """What is said about the text as it is now, without what earlier probes added."""
    await ls.session.current(spot.document)
    return [each for each in ls.session.static_findings(spot.document) if each.path == spot.document.path]


async def finding_at(ls: GradSightServer, spot: Spot, line: int, code: str) -> Finding:
    """The finding at a line, or the only one of the function around it; refuses if there is none."""
    from gradsight.session.proving import findings_on

    wanted = line + 1 + spot.offset
    findings = [each for each in await findings_of(ls, spot) if not code or each.code == code]
    here = findings_on(findings, wanted)
    if here:
        return here[0]
    first, last = function_at(spot.document, wanted)
    inside = [each for each in findings if first <= each.span.line <= last]
    if len(inside) == 1:
        return inside[0]
    raise Refused("there is no finding here: put the cursor on an underlined line")


def request_of(ls: GradSightServer, document: Document) -> ProbeRequest:
    """The text of a document as a program, within the user's limits."""
    from gradsight.session.proving import program_of

    return program_of(document.source, document.options.probe, _directory(ls, document))


def subject_of(ls: GradSightServer, document: Document) -> Subject:
    """The text of a document as it is now, to prove findings of."""
    from gradsight.session.proving import Subject

    return Subject(document.source, request_of(ls, document), ls.session.workshop(document).check)


def _directory(ls: GradSightServer, document: Document) -> str | None:
    """Programs are run from the folder of the workspace that they lie in."""
    folders = [path_of(folder) for folder in ls.choices.folders]
    around = [folder for folder in folders if document.path.startswith(folder.rstrip("/\\") + os.sep)]
    place = max(around, key=len, default=os.path.dirname(document.path))
    return place if os.path.isdir(place) else None


def run_shown(ls: GradSightServer) -> Run:
    """Runs probes with progress; a cancelled one ends the request."""
    from gradsight.probe.outcome import Cancelled

    async def run(request: ProbeRequest, title: str) -> Outcome:
        reporter = Reporter(ls, ls.progress_token)
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

    return run


def _so_far(progress: Progress) -> str:
    faults = f", {progress.faults} fault{'' if progress.faults == 1 else 's'}" if progress.faults else ""
    steps = f", {progress.steps} step{'' if progress.steps == 1 else 's'}" if progress.steps else ""
    return f"{progress.backwards} backward{steps}{faults}, {progress.seconds:.1f} s"


def function_at(document: Document, line: int) -> tuple[int, int]:
    """The first and last line of the outermost function around a line; the whole file outside of functions."""
    from gradsight.session.units import units_of

    text = document.source.text
    for unit in units_of(text, [line]):
        if not unit.is_module:
            return unit.lines[0], unit.lines[-1]
    return 1, text.count("\n") + 1


def cell_at(spot: Spot, line: int) -> tuple[int, int]:
    """The first and last line of the cell around a line: of a notebook, or between two `# %%` of a file."""
    if spot.cell is not None:
        return spot.offset + 1, spot.offset + len(spot.cell.buffer.lines)
    rows = spot.document.source.text.split("\n")
    marks = [number for number, row in enumerate(rows, 1) if re.match(r"#\s*%%", row)]
    first = max((mark for mark in marks if mark <= line), default=1)
    last = min((mark - 1 for mark in marks if mark > line), default=len(rows))
    return first, last
