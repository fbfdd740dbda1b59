"""Where the client points, and where we point: addresses and positions to documents and spans, and back.

A notebook cell is a document of its own to the client and a part of a module to us.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradsight.lsp.convert import Encoding, path_of, point_of, range_of, uri_of
from gradsight.lsp.wire_types import types
from gradsight.model.source import Span
from gradsight.session.buffer import Buffer, split_keeping_ends, without_end
from gradsight.session.documents import Document, Notebook, OpenCell
from gradsight.session.session import EditorSession


@dataclass(frozen=True, slots=True)
class Spot:
    """What an address stands for: an open document, or a cell of an open notebook."""

    document: Document
    cell: OpenCell | None = None

    @property
    def buffer(self) -> Buffer:
        """The text that the client sees under this address."""
        return self.cell.buffer if self.cell is not None else self.document.buffer

    @property
    def version(self) -> int | None:
        """The client's version of that text."""
        return self.cell.version if self.cell is not None else self.document.version

    @property
    def offset(self) -> int:
        """How many lines of the module come before the text."""
        if self.cell is None or not isinstance(self.document, Notebook):
            return 0
        return self.document.offset_of(self.cell) or 0


def spot_of(session: EditorSession, uri: str) -> Spot | None:
    """The open document or code cell with this address."""
    document = session.open.find(uri)
    if document is None:
        return None
    if not isinstance(document, Notebook):
        return Spot(document)
    cell = document.cell(uri)
    return Spot(document, cell) if cell is not None and cell.is_code else None


def span_of(spot: Spot, asked: types.Range, encoding: Encoding) -> Span:
    """A client's range as a span of the module."""
    start = point_of(spot.buffer, asked.start, encoding)
    end = point_of(spot.buffer, asked.end, encoding)
    return Span(start.line + 1 + spot.offset, start.column, end.line + 1 + spot.offset, end.column)


def locate(document: Document, span: Span, encoding: Encoding) -> tuple[str, types.Range]:
    """Where a span of an open document is to the client: address and range."""
    first, last = document.line_text(span.line), document.line_text(span.end_line)
    if isinstance(document, Notebook):
        cell, inside = document.locate(span)
        if cell is not None:
            inside = _inside_cell(cell, inside)
            return cell.key, range_of(inside, first, last, encoding)
    return document.key, range_of(span, first, last, encoding)


def locate_at_path(
    session: EditorSession, path: str, span: Span, encoding: Encoding
) -> tuple[str, types.Range]:
    """Where a span of any file is to the client."""
    document = session.open.at_path(path)
    if document is not None:
        return locate(document, span, encoding)
    source = session.files.source_at(path)
    lines = split_keeping_ends(source.text) if source is not None else []

    def line(number: int) -> str:
        return without_end(lines[number - 1]) if 0 < number <= len(lines) else ""

    return uri_of(path), range_of(span, line(span.line), line(span.end_line), encoding)


def _inside_cell(cell: OpenCell, span: Span) -> Span:
    """A span that begins in a cell ends there too."""
    last = len(cell.buffer.lines)
    if span.end_line <= last:
        return span
    return Span(span.line, span.column, last, len(cell.buffer.content(last - 1)))


__all__ = ["Spot", "locate", "locate_at_path", "path_of", "span_of", "spot_of"]
