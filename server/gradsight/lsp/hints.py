"""Inlay hints behind tensor names: `leaf`, `grad_fn=Exp`, `v1`, and what a probe saw; off unless the user asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradsight.lsp.hover import SHOW_LINE
from gradsight.lsp.places import locate, span_of, spot_of
from gradsight.lsp.wire_types import types
from gradsight.model.card import TensorCard
from gradsight.model.source import Span
from gradsight.session.documents import Document
from gradsight.session.tensor_text import HintPart, hint_legend, hint_parts

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
        parts = hint_parts(card, observed.label(*seen), observed.grad_fn(*seen))
        if parts:
            _, place = locate(document, card.span, ls.client.encoding)
            tooltip = types.MarkupContent(types.MarkupKind.Markdown, hint_legend(parts, document.line_name))
            label = [_part(ls, document, part, " " if number else "") for number, part in enumerate(parts)]
            hints.append(types.InlayHint(place.end, label, tooltip=tooltip, padding_left=True))
    return hints


def _part(ls: GradSightServer, document: Document, part: HintPart, space: str) -> types.InlayHintLabelPart:
    """A part of a hint; a click leads from it to its line.

    VS Code takes a location for a symbol, and goes to where that is defined: our own client gets a command.
    """
    text = f"{space}{part.words}"
    if not part.line:
        return types.InlayHintLabelPart(text)
    uri, place = locate(document, Span(part.line, 0, part.line, 0), ls.client.encoding)
    if ls.client.shows_pages:
        way = types.Command("Go to the line", SHOW_LINE, None, [uri, place.start.line])
        return types.InlayHintLabelPart(text, command=way)
    return types.InlayHintLabelPart(text, location=types.Location(uri, place))
