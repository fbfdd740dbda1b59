"""Code lenses above functions and `__main__` blocks: one for each command that somebody registered with the server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradsight.lsp.places import locate, spot_of
from gradsight.lsp.wire_types import types
from gradsight.model.source import Span
from gradsight.session.documents import Document

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer

_PLACES = re.compile(
    r"^(?P<indent>[ \t]*)(?:(?:async[ \t]+)?def[ \t]+(?P<name>\w+)|if[ \t]+__name__[ \t]*==)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class LensCommand:
    """Something that can be run on a function or on the whole file.  Its arguments are the address and the line."""

    title: str
    command: str
    for_functions: bool = True
    for_main: bool = True


def register(server: GradSightServer) -> None:
    """Answer requests for lenses."""
    server.feature(types.TEXT_DOCUMENT_CODE_LENS)(code_lenses)


def code_lenses(ls: GradSightServer, params: types.CodeLensParams) -> list[types.CodeLens]:
    """The lenses of a document; none if nothing can be run."""
    spot = spot_of(ls.session, params.text_document.uri)
    if spot is None or not ls.lens_commands or not ls.session.options_for(spot.document).code_lens:
        return []
    lenses = []
    for span, is_main in runnable_places(spot.document):
        uri, place = locate(spot.document, span, ls.client.encoding)
        if uri != params.text_document.uri:
            continue
        for each in ls.lens_commands:
            if each.for_main if is_main else each.for_functions:
                command = types.Command(each.title, each.command, arguments=[uri, place.start.line])
                lenses.append(types.CodeLens(place, command))
    return lenses


def runnable_places(document: Document) -> Iterator[tuple[Span, bool]]:
    """Where functions and `__main__` blocks begin, and whether it is the latter."""
    text = document.source.text
    if "torch" not in text:
        return
    line, at = 1, 0
    for found in _PLACES.finditer(text):
        line += text.count("\n", at, found.start())
        at = found.start()
        column = len(found.group("indent"))
        yield Span(line, column, line, column + len(found.group().strip())), found.group("name") is None
