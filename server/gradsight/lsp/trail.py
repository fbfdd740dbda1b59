"""The lines that lead to a finding: as highlights while the cursor is on it, and as places to go to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradsight.lsp.places import locate, locate_at_path, span_of, spot_of
from gradsight.lsp.wire_types import types
from gradsight.model.finding import Finding, Role

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer

WRITES: tuple[Role, ...] = ("written", "cut", "made")


def register(server: GradSightServer) -> None:
    """Answer requests for highlights, and the command that names the places."""
    server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)(highlights)
    server.add_command("gradsight.trail", trail)


def highlights(
    ls: GradSightServer, params: types.DocumentHighlightParams
) -> list[types.DocumentHighlight] | None:
    """The lines of the finding at the cursor that lie in this text; nothing elsewhere, so that others may answer."""
    spot = spot_of(ls.session, params.text_document.uri)
    if spot is None:
        return None
    place = span_of(spot, types.Range(params.position, params.position), ls.client.encoding)
    document = spot.document
    found = []
    for finding in ls.session.findings_of(document):
        if finding.path != document.path or not finding.span.contains(place.line, place.column):
            continue
        for role, path, span in steps_of(finding):
            if path != document.path:
                continue
            uri, where = locate(document, span, ls.client.encoding)
            if uri == params.text_document.uri:
                kind = (
                    types.DocumentHighlightKind.Write if role in WRITES else types.DocumentHighlightKind.Read
                )
                found.append(types.DocumentHighlight(where, kind))
    return found or None


def trail(ls: GradSightServer, uri: str, line: int = 0) -> dict[str, Any]:
    """The places of the finding at a line, each with its role and its sentence."""
    spot = spot_of(ls.session, uri)
    steps: list[dict[str, Any]] = []
    if spot is None:
        return {"steps": steps}
    wanted = line + 1 + spot.offset
    findings = [
        each
        for each in ls.session.findings_of(spot.document)
        if each.path == spot.document.path and each.span.line <= wanted <= each.span.end_line
    ]
    for finding in findings[:1]:
        for role, path, span in steps_of(finding):
            where, place = locate_at_path(ls.session, path, span, ls.client.encoding)
            said = next(
                (step.message for step in finding.related if (step.role, step.span) == (role, span)), ""
            )
            steps.append({
                "role": role, "uri": where, "line": place.start.line, "character": place.start.character,
                "message": said or finding.message,
            })  # fmt: skip
    return {"steps": steps}


def steps_of(finding: Finding) -> list[tuple[Role, str, Any]]:
    """The trail without callers and assumptions, and the finding itself where nothing else in it is the write."""
    steps: list[tuple[Role, str, Any]] = [
        (step.role, step.path, step.span) for step in finding.related if step.role not in ("call", "assumed")
    ]
    if not any(role == "written" for role, _, _ in steps):
        steps.append(("written", finding.path, finding.span))
    return steps
