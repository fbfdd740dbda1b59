"""Findings as diagnostics: pushed with their version, or handed out when the client asks; never both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import attrs

from gradsight.lsp.client import Client
from gradsight.lsp.convert import path_of, uri_of
from gradsight.lsp.places import locate, locate_at_path, spot_of
from gradsight.lsp.wire_types import types
from gradsight.model.finding import Finding
from gradsight.model.suppressions import UNUSED_CODE
from gradsight.session.documents import Document, Notebook
from gradsight.session.evidence import in_two_lines
from gradsight.session.pages import page_url
from gradsight.session.session import EditorSession

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer

SOURCE = "gradsight"
NOT_RUN = "this cell has not been run yet"
SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}
Diagnostics = dict[str, list[types.Diagnostic]]


def register(server: GradSightServer) -> None:
    """Answer a client that asks; everyone else is pushed to."""
    server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC)(pull_document)
    server.feature(types.WORKSPACE_DIAGNOSTIC)(pull_workspace)


def show(server: GradSightServer, document: Document, elsewhere: set[str]) -> None:
    """A report came in: push it, unless the client pulls."""
    if server.client.pulls_diagnostics:
        return
    found = diagnostics_of(server.session, document, server.client)
    for uri, diagnostics in found.items():
        publish(server, uri, diagnostics)
    for path in elsewhere:
        show_elsewhere(server, path)


def show_elsewhere(server: GradSightServer, path: str) -> None:
    """What open documents found in a file that they import is shown there."""
    document = server.session.open.at_path(path)
    if document is not None:
        if document.report is not None:
            show(server, document, set())
        return
    findings = server.session.findings_at(path)
    publish(
        server, uri_of(path), [diagnostic_of(server.session, finding, server.client) for finding in findings]
    )


def clear(server: GradSightServer, uris: Iterable[str]) -> None:
    """Nothing more is to be said about these."""
    if not server.client.pulls_diagnostics:
        for uri in uris:
            publish(server, uri, [])


def publish(server: GradSightServer, uri: str, diagnostics: list[types.Diagnostic]) -> None:
    """Push diagnostics with the version of the text they are about."""
    if not diagnostics and uri not in server.published:
        if spot_of(server.session, uri) is None:
            return
    spot = spot_of(server.session, uri)
    version = spot.version if spot is not None and server.client.takes_versions else None
    if diagnostics:
        server.published.add(uri)
    else:
        server.published.discard(uri)
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))


async def pull_document(
    ls: GradSightServer, params: types.DocumentDiagnosticParams
) -> types.DocumentDiagnosticReport:
    """The diagnostics of one document, once they are about its newest text."""
    uri = params.text_document.uri
    document = ls.session.open.find(uri)
    if document is None:
        findings = ls.session.findings_at(path_of(uri))
        own = [diagnostic_of(ls.session, finding, ls.client) for finding in findings]
    else:
        if ls.session.is_due(document):
            await ls.session.current(document)
        own = diagnostics_of(ls.session, document, ls.client).get(uri, [])
    if own:
        ls.published.add(uri)
    return _answer(own, params.previous_result_id)


async def pull_workspace(
    ls: GradSightServer, params: types.WorkspaceDiagnosticParams
) -> types.WorkspaceDiagnosticReport:
    """The diagnostics of everything open, and of what open documents found elsewhere."""
    known = {entry.uri: entry.value for entry in params.previous_result_ids}
    items: list[
        types.WorkspaceFullDocumentDiagnosticReport | types.WorkspaceUnchangedDocumentDiagnosticReport
    ] = []
    said: set[str] = set()
    for document in list(ls.session.open.documents.values()):
        if ls.session.is_due(document):
            await ls.session.current(document)
        for uri, diagnostics in diagnostics_of(ls.session, document, ls.client).items():
            spot = spot_of(ls.session, uri)
            said.add(uri)
            items.append(_entry(uri, spot.version if spot else None, diagnostics, known.get(uri)))
    async for path, findings in ls.other_files():
        uri = uri_of(path)
        if uri not in said:
            said.add(uri)
            diagnostics = [diagnostic_of(ls.session, finding, ls.client) for finding in findings]
            items.append(_entry(uri, None, diagnostics, known.get(uri)))
    # A client forgets what it knows of a tab that is closed, and may have asked for it once more while the text was open:
    # of an address that was answered nothing is left to show until the client has said that it knows so.
    items += [_entry(uri, None, [], known.get(uri)) for uri in sorted({*known, *ls.published} - said)]
    ls.published -= {uri for uri in known if uri not in said and known[uri] == _identity([])}
    return types.WorkspaceDiagnosticReport(items)


def diagnostics_of(session: EditorSession, document: Document, client: Client) -> Diagnostics:
    """The diagnostics of a document by address; a notebook has one address for each code cell."""
    found: Diagnostics = {document.key: []}
    if isinstance(document, Notebook):
        found = {cell.key: [] for cell in document.code_cells()}
    for finding in session.findings_of(document):
        uri, _ = locate(document, finding.span, client.encoding)
        found.setdefault(uri, []).append(diagnostic_of(session, finding, client))
    return found


def diagnostic_of(session: EditorSession, finding: Finding, client: Client) -> types.Diagnostic:
    """One finding; fields that the client does not know are left out."""
    _, place = locate_at_path(session, finding.path, finding.span, client.encoding)
    is_unused = finding.code == UNUSED_CODE
    tags = [tag for tag in [types.DiagnosticTag.Unnecessary] if is_unused and int(tag) in client.tags]
    return types.Diagnostic(
        range=place,
        message=_message(session, finding, client),
        severity=SEVERITIES[finding.severity],
        code=finding.code,
        code_description=_description(finding) if client.takes_code_description else None,
        source=SOURCE,
        tags=tags or None,
        related_information=_trail(session, finding, client) if client.takes_related_information else None,
        data=_data(finding, place) if client.takes_data else None,
    )


def _message(session: EditorSession, finding: Finding, client: Client) -> str:
    if client.shows_pages:
        return in_two_lines(finding)
    return finding.message if client.takes_related_information else _with_trail(session, finding)


def _data(finding: Finding, place: types.Range) -> dict[str, Any]:
    """What comes back with a question about the finding; a verdict of the probe changes what is shown of it."""
    data = {"code": finding.code, "line": place.start.line, "certainty": finding.certainty}
    verdict = finding.data.get("verdict")
    return {**data, "verdict": verdict} if verdict is not None else data


def _description(finding: Finding) -> types.CodeDescription | None:
    return types.CodeDescription(page_url(finding.name)) if finding.code != UNUSED_CODE else None


def _trail(
    session: EditorSession, finding: Finding, client: Client
) -> list[types.DiagnosticRelatedInformation] | None:
    steps = []
    for step in finding.related:
        uri, place = locate_at_path(session, step.path, step.span, client.encoding)
        document = session.open.at_path(step.path)
        name = document.line_name(step.span.line) if isinstance(document, Notebook) else ""
        message = f"{name}: {step.message}" if name else step.message
        steps.append(types.DiagnosticRelatedInformation(types.Location(uri, place), message))
    own = session.open.at_path(finding.path)
    if isinstance(own, Notebook) and own.awaits_run(finding.span.line):
        uri, place = locate_at_path(session, finding.path, finding.span, client.encoding)
        text = f"{own.line_name(finding.span.line)}: {NOT_RUN}"
        steps.append(types.DiagnosticRelatedInformation(types.Location(uri, place), text))
    return steps or None


def _with_trail(session: EditorSession, finding: Finding) -> str:
    """For clients that cannot show other places: the lines are named in the message."""
    document = session.open.at_path(finding.path)
    steps = [
        f"{document.line_name(step.span.line) if document is not None else f'line {step.span.line}'}: {step.message}"
        for step in finding.related
        if step.path == finding.path
    ]
    return "; ".join([finding.message, *steps])


def _answer(diagnostics: list[types.Diagnostic], previous: str | None) -> types.DocumentDiagnosticReport:
    result = _identity(diagnostics)
    if result == previous:
        return types.RelatedUnchangedDocumentDiagnosticReport(result_id=result)
    return types.RelatedFullDocumentDiagnosticReport(items=diagnostics, result_id=result)


def _entry(
    uri: str, version: int | None, diagnostics: Sequence[types.Diagnostic], previous: str | None
) -> types.WorkspaceFullDocumentDiagnosticReport | types.WorkspaceUnchangedDocumentDiagnosticReport:
    result = _identity(diagnostics)
    if result == previous:
        return types.WorkspaceUnchangedDocumentDiagnosticReport(uri, result, version)
    return types.WorkspaceFullDocumentDiagnosticReport(uri, diagnostics, version, result_id=result)


def _identity(diagnostics: Sequence[types.Diagnostic]) -> str:
    """Equal for equal diagnostics, whatever the version: a document that is opened anew may start at any."""
    told = json.dumps([_plain(one) for one in diagnostics])
    return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()


def _plain(value: Any) -> Any:
    """A value of the protocol with everything in it, as JSON has it."""
    if attrs.has(type(value)):
        return {field.name: _plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value
