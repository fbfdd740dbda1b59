"""Inlay hints behind tensor names: `leaf`, `grad_fn=Exp`, `v1`, and what a probe saw; off unless the user asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.lsp.places import locate, span_of, spot_of
from gradsight.lsp.wire_types import types
from gradsight.model.card import TensorCard
from gradsight.model.source import Span
from gradsight.session.documents import Document
from gradsight.session.tensor_text import hint_parts, tensor_card

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer


def register(server: GradSightServer) -> None:
    """Answer requests for hints."""
    server.feature(types.TEXT_DOCUMENT_INLAY_HINT)(inlay_hints)


async def inlay_hints(ls: GradSightServer, params: types.InlayHintParams) -> list[types.InlayHint]:
    """A hint for each tensor name that is bound in the range."""
    spot = spot_of(ls.session, params.text_document.uri)
    if spot is None or not spot.document.options.inlay_hints:
        return []
    document = spot.document
    await ls.session.current(document)
    asked = span_of(spot, params.range, ls.client.encoding)
    hints, observed = [], ls.session.evidence.observed
    for card in await ls.session.cards(document, asked.line, asked.end_line):
        if not isinstance(card, TensorCard) or not card.is_assigned:
            continue
        seen = (document.path, document.source.text, card.span.line, card.name)
        words = [*hint_parts(card), (observed.label(*seen), 0)]
        parts = [_part(ls, document, text, line) for text, line in words if text]
        if parts:
            _, place = locate(document, card.span, ls.client.encoding)
            told = "\n\n".join(
                part for part in (tensor_card(card, document.line_name), observed.card(*seen)) if part
            )
            tooltip = types.MarkupContent(types.MarkupKind.Markdown, told)
            hints.append(types.InlayHint(place.end, parts, tooltip=tooltip, padding_left=True))
    return hints


def _part(ls: GradSightServer, document: Document, text: str, line: int) -> types.InlayHintLabelPart:
    """A part of a hint; a click leads from it to its line."""
    if not line:
        return types.InlayHintLabelPart(f" {text}")
    uri, place = locate(document, Span(line, 0, line, 0), ls.client.encoding)
    return types.InlayHintLabelPart(f" {text}", location=types.Location(uri, place))
