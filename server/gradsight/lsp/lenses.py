"""Code lenses above `__main__` blocks, `# %%` cells, and functions that call backward or have a finding."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gradsight.lsp.places import locate, spot_of
from gradsight.lsp.wire_types import types
from gradsight.model.relevance import is_about_torch
from gradsight.model.source import Span
from gradsight.session.documents import Document

if TYPE_CHECKING:
    from gradsight.lsp.server import GradSightServer

ALARMS = ("error", "warning")
LONGEST_WAIT = 10.0
CALLS_BACKWARD = re.compile(r"\bbackward\(|\bautograd\.grad\(")
Kind = Literal["function", "main", "cell"]
_PLACES = re.compile(
    r"^(?:(?P<cell>#[ \t]*%%)|[ \t]*(?:(?P<function>(?:async[ \t]+)?def[ \t]+\w+)|(?P<main>if[ \t]+__name__[ \t]*==)))",
    re.MULTILINE,
)


SIGN = "$(beaker)\N{NO-BREAK SPACE} "
"""How our own editor draws a flask, as on the button of a cell; others would show the letters.  In the small font of a lens
one space alone is not seen."""


@dataclass(frozen=True, slots=True)
class LensCommand:
    """Something that can be run on places of some kinds.  Its arguments are the address and the line."""

    title: str
    command: str
    kinds: tuple[Kind, ...] = ("function", "main")
    tooltip: str = ""


def register(server: GradSightServer) -> None:
    """Answer requests for lenses."""
    server.feature(types.TEXT_DOCUMENT_CODE_LENS)(code_lenses)


async def code_lenses(ls: GradSightServer, params: types.CodeLensParams) -> list[types.CodeLens]:
    """The lenses of a document; none if nothing can be run.

    Some stand above functions with a finding, and the client asks once: the answer waits for the findings.
    """
    spot = spot_of(ls.session, params.text_document.uri)
    if spot is None or not ls.lens_commands or not spot.document.options.code_lens:
        return []
    if ls.session.is_due(spot.document):
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(ls.session.current(spot.document), LONGEST_WAIT)
    lenses = []
    found = {each.span.line for each in ls.session.findings_of(spot.document) if each.severity in ALARMS}
    for span, kind in runnable_places(spot.document, found):
        uri, place = locate(spot.document, span, ls.client.encoding)
        if uri != params.text_document.uri:
            continue
        for each in ls.lens_commands:
            if kind in each.kinds:
                sign = SIGN if ls.client.shows_pages else ""
                command = types.Command(
                    sign + each.title, each.command, each.tooltip or None, [uri, place.start.line]
                )
                lenses.append(types.CodeLens(place, command))
    return lenses


def runnable_places(document: Document, found: Collection[int] = ()) -> Iterator[tuple[Span, Kind]]:
    """Where `__main__` blocks, cells and functions worth running begin, and which of these it is.

    `found` are the lines with a finding: a function that has none and calls no backward shows nothing when it is run.
    """
    text = document.source.text
    if not is_about_torch(text):
        return
    kinds: tuple[Kind, ...] = ("function", "main", "cell")
    line, at = 1, 0
    for place in _PLACES.finditer(text):
        line += text.count("\n", at, place.start())
        at = place.start()
        kind = next(each for each in kinds if place.group(each))
        column = place.start(kind) - at
        if kind == "function" and not is_worth_running(text, at, line, found):
            continue
        yield Span(line, column, line, column + len(place.group(kind))), kind


def is_worth_running(text: str, start: int, first: int, found: Collection[int]) -> bool:
    """Whether the function that begins here calls backward, or has a finding in one of its lines."""
    rows = text[start:].split("\n")
    indent = len(rows[0]) - len(rows[0].lstrip())
    last = 1
    while last < len(rows):
        row = rows[last].strip()
        is_inside = (
            not row or row.startswith(("#", ")", "]")) or len(rows[last]) - len(rows[last].lstrip()) > indent
        )
        if not is_inside:
            break
        last += 1
    body = rows[:last]
    return any(first <= line < first + last for line in found) or any(
        CALLS_BACKWARD.search(row) for row in body
    )
