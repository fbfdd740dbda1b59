"""Repairs: edits of one text, and how far they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gradsight.model.source import Span

Safety = Literal["safe", "unsafe"]


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Put `text` in the place of what `span` covers; an empty span inserts."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """One repair of one finding, or one rewrite of one statement.

    *Safe*: the values of the forward pass stay what they were and the gradient becomes right.
    *Unsafe*: the author's intent has to be guessed; it is offered, and never applied without being asked for.
    Edits are in reading order and do not overlap.  `code` is empty for a rewrite that repairs nothing.
    """

    title: str
    safety: Safety
    edits: tuple[Edit, ...]
    code: str = ""
    preferred: bool = False


def apply_edits(text: str, edits: tuple[Edit, ...]) -> str:
    """The text after all edits; everything that no edit covers stays as it is, byte for byte."""
    starts = line_starts(text)
    pieces = []
    done = 0
    for edit in sorted(edits):
        start = starts[edit.span.line - 1] + edit.span.column
        pieces += [text[done:start], edit.text]
        done = starts[edit.span.end_line - 1] + edit.span.end_column
    pieces.append(text[done:])
    return "".join(pieces)


def line_starts(text: str) -> list[int]:
    """Where each line begins.  A line ends as Python's own reader has it: with a line feed, a carriage return, or both."""
    starts = [0]
    if "\r" not in text:
        place = text.find("\n")
        while place >= 0:
            starts.append(place + 1)
            place = text.find("\n", place + 1)
        return starts
    place = 0
    while place < len(text):
        if text[place] == "\n" or (text[place] == "\r" and text[place + 1 : place + 2] != "\n"):
            starts.append(place + 1)
        place += 1
    return starts
