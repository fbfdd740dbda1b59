"""Source text and places in it.

A *line* is counted from 1 and a *column* from 0, in Unicode code points.  `ast` counts columns in UTF-8 bytes and
editors in what they negotiated: both are converted at the two doors that meet them, never in between.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of text: from (line, column) up to but not including (end_line, end_column)."""

    line: int
    column: int
    end_line: int
    end_column: int

    def contains(self, line: int, column: int) -> bool:
        """Whether the place lies in the span; its end counts as inside, as a cursor does."""
        return (self.line, self.column) <= (line, column) <= (self.end_line, self.end_column)

    def moved(self, lines: int) -> Span:
        """The same span, `lines` further down."""
        return Span(self.line + lines, self.column, self.end_line + lines, self.end_column)


@dataclass(frozen=True, slots=True)
class Source:
    """One document: where it is said to live, and its text.  The path is a name; nothing is read from it."""

    path: str
    text: str
    library: str = ""
    """The library that the text is a model of; empty for a program of the user."""
