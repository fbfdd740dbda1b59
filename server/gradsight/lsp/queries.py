"""Questions of the editor that run no program of the user's: which interpreter, what does this traceback mean, and
which facts does my torch have."""

from __future__ import annotations

import asyncio
import os
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from gradsight import __version__
from gradsight.lsp.convert import path_of, uri_of
from gradsight.lsp.places import spot_of
from gradsight.lsp.probe_requests import UNTRUSTED, Refused
from gradsight.lsp.probing import line_reader
from gradsight.lsp.progress import Reporter
from gradsight.model.finding import Finding
from gradsight.session.gaps import not_analysed
from gradsight.session.probe_options import ProbeOptions

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer
    from gradsight.session.tracebacks import TracebackFrame

Answer = dict[str, Any]
MOST_FILES = 200


def register(server: GradSightServer) -> None:
    """Offer the commands."""
    server.add_command("gradsight.environment", environment)
    server.add_command("gradsight.explainError", explain_error)
    server.add_command("gradsight.refreshFacts", refresh_facts)
    server.add_command("gradsight.rulePage", rule_page)


async def environment(ls: GradSightServer, uri: str = "") -> Answer:
    """The interpreter that a probe of this file would use, its torch, and who is asked."""
    import platform

    from gradsight.session.interpreters import Interpreter, inspect, resolve

    options = _options(ls, uri)
    path = resolve(options.interpreter)
    # An interpreter of an untrusted workspace is a program of that workspace.
    found = await asyncio.to_thread(inspect, path) if options.allowed else Interpreter(path)
    return {
        "python": found.path,
        "version": found.version,
        "torch": found.torch.split("+")[0],
        "server": __version__,
        "serverPython": platform.python_version(),
        "notAnalysed": await _not_analysed(ls, uri),
    }


async def explain_error(ls: GradSightServer, text: str) -> Answer:
    """What a traceback means, and which lines it may be about."""
    from gradsight.session import tracebacks, watch_notes

    message = tracebacks.message_of(text)
    meaning = tracebacks.meaning_of(message)
    frames = tracebacks.frames_of(text)
    found = []
    if meaning is not None:
        found = tracebacks.suspects(meaning, frames, await _findings(ls, frames))

    def link(path: str, line: int) -> str:
        return f"{uri_of(path)}#L{line}"

    notes = watch_notes.notes_in(text, [frame.path for frame in frames])
    return {"markdown": tracebacks.explanation(message, found, line_reader(ls), link, notes)}


def rule_page(ls: GradSightServer, uri: str = "", line: int = 0, code: str = "") -> Answer:
    """The manual page of a rule: of the one that is named, or of the finding at a line; else the rules to choose from."""
    from gradsight.rules import ALL, find
    from gradsight.session.pages import page_markdown

    spot = spot_of(ls.session, uri) if uri and not code else None
    if spot is not None:
        wanted = line + 1 + spot.offset
        code = next(
            (each.code for each in ls.session.findings_of(spot.document)
             if each.path == spot.document.path and each.span.line <= wanted <= each.span.end_line),
            "",
        )  # fmt: skip
    rule = find(code) if code else None
    return {
        "code": rule.code if rule is not None else "",
        "markdown": page_markdown(rule) if rule is not None else "",
        "rules": [[each.code, each.name, each.summary] for each in ALL],
    }


async def refresh_facts(ls: GradSightServer, uri: str = "") -> Answer:
    """Measure the operators of the user's torch, and use what was measured from now on."""
    from gradsight.ops.refresh import RefreshFailed, refresh
    from gradsight.session.interpreters import resolve

    options = _options(ls, uri)
    if not options.allowed:
        raise Refused(UNTRUSTED)
    python = resolve(options.interpreter)
    reporter = Reporter(ls, ls.progress_token)
    await reporter.begin(f"Measuring the torch of {python}")
    loop = asyncio.get_running_loop()
    stopped = threading.Event()

    def show(done: int, total: int) -> None:
        if stopped.is_set():
            raise RefreshFailed("cancelled")
        loop.call_soon_threadsafe(reporter.report, f"{done} of {total} operators")

    try:
        made = await asyncio.to_thread(refresh, python, progress=show)
    except asyncio.CancelledError:
        stopped.set()
        reporter.end("cancelled")
        raise
    except RefreshFailed as problem:
        reporter.end("failed")
        raise Refused(f"{problem}; the facts in use stay as they are") from None
    reporter.end("done")
    ls.session.use_options(ls.session.options)
    ls.session.outdate(ls.session.open.documents.values())
    return {
        "summary": f"GradSight measured {made.facts} operators of torch {made.torch_version.split('+')[0]}"
    }


async def _not_analysed(ls: GradSightServer, uri: str) -> str:
    """How much of an open file the analysis had to leave out."""
    spot = spot_of(ls.session, uri) if uri else None
    if spot is None:
        return ""
    await ls.session.current(spot.document)
    return not_analysed(spot.document.report)


def _options(ls: GradSightServer, uri: str) -> ProbeOptions:
    """The options that hold for a file; those of the first folder when none is named."""
    spot = spot_of(ls.session, uri) if uri else None
    if spot is not None:
        return spot.document.options.probe
    return next(iter(ls.choices.folders.values()), ls.choices.common).probe


async def _findings(ls: GradSightServer, frames: list[TracebackFrame]) -> list[Finding]:
    """What is found in open files, and in those that the traceback passed through."""
    from gradsight.session.schedule import Urgency

    found: dict[tuple[str, str, int], Finding] = {}
    for document in list(ls.session.open.documents.values()):
        await ls.session.current(document)
        for finding in ls.session.findings_of(document):
            found[finding.path, finding.code, finding.span.line] = finding
    for path in _own_files(ls, frames):
        for finding in await ls.session.worker.submit(Urgency.AWAITED, partial(_analyse, ls, path)):
            found.setdefault((finding.path, finding.code, finding.span.line), finding)
    return list(found.values())


def _own_files(ls: GradSightServer, frames: list[TracebackFrame]) -> list[str]:
    """Files of the traceback that belong to the workspace and are not open."""
    folders = [path_of(folder).rstrip("/\\") + os.sep for folder in ls.choices.folders]
    paths = dict.fromkeys(os.path.abspath(frame.path) for frame in frames)
    return [
        path
        for path in paths
        if path.endswith(".py")
        and os.path.isfile(path)
        and ls.session.open.at_path(path) is None
        and "site-packages" not in path
        and (not folders or any(path.startswith(folder) for folder in folders))
    ][:MOST_FILES]


def _analyse(ls: GradSightServer, path: str) -> list[Finding]:
    from gradsight.analysis import analyze

    source = ls.session.files.source_at(path)
    if source is None:
        return []
    settings = ls.session.files.configuration_for(path).settings
    return list(analyze(source, settings, ls.session.files.finder_for(path)).findings)
