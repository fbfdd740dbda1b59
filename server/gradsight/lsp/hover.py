"""Hover: the card for a place, as Markdown or as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.lsp.places import locate, span_of, spot_of
from gradsight.lsp.wire_types import types

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer


def register(server: GradSightServer) -> None:
    """Answer hovers."""
    server.feature(types.TEXT_DOCUMENT_HOVER)(hover)


async def hover(ls: GradSightServer, params: types.HoverParams) -> types.Hover | None:
    """What there is to say about a place; the last report is enough, so that nobody waits for the next."""
    from gradsight.session.hovering import card_at, plain_text

    spot = spot_of(ls.session, params.text_document.uri)
    if spot is None:
        return None
    place = span_of(spot, types.Range(params.position, params.position), ls.client.encoding)
    document = spot.document
    cards = await ls.session.cards(document, place.line, place.line)
    findings, observed = ls.session.findings_of(document), ls.session.evidence.observed
    card = card_at(document, findings, place.line, place.column, cards, observed)
    if card is None:
        return None
    _, shown = locate(document, card.span, ls.client.encoding)
    if ls.client.reads_markdown:
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, card.markdown), shown)
    return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, plain_text(card.markdown)), shown)
