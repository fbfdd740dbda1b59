"""Code lenses above functions, `__main__` blocks and `# %%` cells: those that somebody registered with the server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gradsight.lsp.places import locate, spot_of
from gradsight.lsp.wire_types import types
from gradsight.model.source import Span
from gradsight.session.documents import Document

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer

Kind = Literal["function", "main", "cell"]
_PLACES = re.compile(
    r"^(?:(?P<cell>#[ \t]*%%)|[ \t]*(?:(?P<function>(?:async[ \t]+)?def[ \t]+\w+)|(?P<main>if[ \t]+__name__[ \t]*==)))",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class LensCommand:
    """Something that can be run on places of some kinds.  Its arguments are the address and the line."""

    title: str
    command: str
    kinds: tuple[Kind, ...] = ("function", "main")


def register(server: GradSightServer) -> None:
    """Answer requests for lenses."""
    server.feature(types.TEXT_DOCUMENT_CODE_LENS)(code_lenses)


def code_lenses(ls: GradSightServer, params: types.CodeLensParams) -> list[types.CodeLens]:
    """The lenses of a document; none if nothing can be run."""
    spot = spot_of(ls.session, params.text_document.uri)
    if spot is None or not ls.lens_commands or not spot.document.options.code_lens:
        return []
    lenses = []
    for span, kind in runnable_places(spot.document):
        uri, place = locate(spot.document, span, ls.client.encoding)
        if uri != params.text_document.uri:
            continue
        for each in ls.lens_commands:
            if kind in each.kinds:
                command = types.Command(each.title, each.command, arguments=[uri, place.start.line])
                lenses.append(types.CodeLens(place, command))
    return lenses


def runnable_places(document: Document) -> Iterator[tuple[Span, Kind]]:
    """Where functions, `__main__` blocks and cells begin, and which of these it is."""
    text = document.source.text
    if "torch" not in text:
        return
    kinds: tuple[Kind, ...] = ("function", "main", "cell")
    line, at = 1, 0
    for found in _PLACES.finditer(text):
        line += text.count("\n", at, found.start())
        at = found.start()
        kind = next(each for each in kinds if found.group(each))
        column = found.start(kind) - at
        yield Span(line, column, line, column + len(found.group(kind))), kind
