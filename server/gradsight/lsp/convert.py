"""From our own terms to the protocol and back: columns in the units that were negotiated, and paths as addresses.

Everywhere else a column counts code points and a line starts at 1; in the protocol a column counts code units of the
negotiated encoding and a line starts at 0.  This is the one place where the two meet.
"""

from __future__ import annotations

from typing import Literal

from pygls import uris

from gradsight.lsp.wire_types import types
from gradsight.model.source import Span
from gradsight.session.buffer import Buffer, Point, TextChange

Encoding = Literal["utf-8", "utf-16", "utf-32"]


def units(text: str, encoding: Encoding) -> int:
    """How long a text is in code units; a lone surrogate counts as itself."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-16":
        return len(text) + sum(character > "\uffff" for character in text)
    return len(text.encode("utf-8", "surrogatepass"))


def to_units(line: str, column: int, encoding: Encoding) -> int:
    """A column in code points as the client counts it."""
    return units(line[:column], encoding)


def to_column(line: str, count: int, encoding: Encoding) -> int:
    """A client's column in code points; inside a character it is the character's start, beyond the line its end."""
    if encoding == "utf-32" or line.isascii():
        return min(max(0, count), len(line))
    column = 0
    for character in line:
        size = units(character, encoding)
        if size > count:
            break
        count -= size
        column += 1
    return column


def point_of(buffer: Buffer, position: types.Position, encoding: Encoding) -> Point:
    """A client's position in a text."""
    if position.line >= len(buffer.lines):
        return buffer.end()
    return Point(position.line, to_column(buffer.content(position.line), position.character, encoding))


def edit_of(buffer: Buffer, change: types.TextDocumentContentChangePartial, encoding: Encoding) -> TextChange:
    """A client's change of a part of a text."""
    start = point_of(buffer, change.range.start, encoding)
    end = point_of(buffer, change.range.end, encoding)
    return TextChange(start, end, change.text)


def range_of(span: Span, first_line: str, last_line: str, encoding: Encoding) -> types.Range:
    """A span whose first and last line are these, as the client counts."""
    return types.Range(
        types.Position(max(0, span.line - 1), to_units(first_line, span.column, encoding)),
        types.Position(max(0, span.end_line - 1), to_units(last_line, span.end_column, encoding)),
    )


def path_of(uri: str) -> str:
    """The path of a file's address; any other address is its own name."""
    if not uri.startswith("file:"):
        return uri
    return uris.to_fs_path(uri) or uri


def uri_of(path: str) -> str:
    """The address of a path; a name that is an address already stays as it is."""
    if "://" in path or path.startswith("untitled:"):
        return path
    return uris.from_fs_path(path) or path
