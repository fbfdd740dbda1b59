"""Hover: the card for a place, as Markdown or as plain text."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from gradsight.lsp.places import locate, locate_at_path, span_of, spot_of
from gradsight.lsp.wire_types import types
from gradsight.model.source import Span

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer


SHOW_LINE = "gradsight.showLine"
LONGEST_WAIT = 10.0
"""Seconds that a hover waits for the first analysis of a text."""


def register(server: GradSightServer) -> None:
    """Answer hovers."""
    server.feature(types.TEXT_DOCUMENT_HOVER)(hover)


async def hover(ls: GradSightServer, params: types.HoverParams) -> types.Hover | None:
    """What there is to say about a place.  The first analysis is waited for; later on the last report is enough."""
    from gradsight.session.hovering import card_at, command_link, plain_text

    spot = spot_of(ls.session, params.text_document.uri)
    if spot is None:
        return None
    place = span_of(spot, types.Range(params.position, params.position), ls.client.encoding)
    document = spot.document
    if document.report is None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(ls.session.current(document), LONGEST_WAIT)
    cards = await ls.session.cards(document, place.line, place.line)
    findings, observed = ls.session.findings_of(document), ls.session.evidence.observed

    def link(path: str, line: int) -> str:
        uri, where = locate_at_path(ls.session, path, Span(line, 0, line, 0), ls.client.encoding)
        line = where.start.line
        # The address of a cell has no room for a line: our own editor goes there by a command.
        return f"{uri}#L{line + 1}" if uri.startswith("file:") else command_link(SHOW_LINE, uri, line)

    ways = link if ls.client.shows_pages else None
    card = card_at(document, findings, place.line, place.column, cards, observed, ways)
    if card is None:
        return None
    _, shown = locate(document, card.span, ls.client.encoding)
    if ls.client.reads_markdown:
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, card.markdown), shown)
    return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, plain_text(card.markdown)), shown)
