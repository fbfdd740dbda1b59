"""Edits by place: what one is, and a text with an edit applied.

A *row* is a line of the edited text that knows which line of the original it was, so that findings in both can be compared.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\r|\n")


class Misplaced(Exception):
    """The text is not the one that the edit was written for."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """Between two columns of a line stands something else."""

    line: int
    sha: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """Lines that are gone; `pass` stands in for them, so that a block is never left empty."""

    line: int
    sha: str
    last: int


@dataclass(frozen=True, slots=True)
class Inserted:
    """New lines after a line (or before it), indented as that line is, and further as their own text is."""

    line: int
    sha: str
    text: str
    before: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """Lines that stand after (or before) another line instead, indented as that one is."""

    line: int
    sha: str
    last: int
    to: int
    before: bool = False


Change = Replaced | Dropped | Inserted | Moved


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the edited text: which line it was (None for a new one), and whether the edit touched it."""

    text: str
    original: int | None
    is_touched: bool = False


def line_hash(line: str) -> str:
    """How an edit knows a line again."""
    return hashlib.sha256(line.strip().encode()).hexdigest()[:12]


def rows_of(text: str) -> list[Row]:
    """The lines of a text as Python counts them."""
    return [Row(line, number) for number, line in enumerate(_LINE_END.split(text), 1)]


def edited(text: str, changes: Sequence[Change]) -> list[Row]:
    """The rows of the text with all changes made; places are those of the text as it was.  Raises Misplaced."""
    rows = rows_of(text)
    for change in changes:
        if not 1 <= change.line <= len(rows) or line_hash(rows[change.line - 1].text) != change.sha:
            raise Misplaced(f"line {change.line} is another one")
    added: dict[tuple[int, bool], list[Row]] = {}
    # From right to left, so that the columns of a line stay true while it changes.
    for change in sorted(changes, key=lambda one: -one.start if isinstance(one, Replaced) else 0):
        index = change.line - 1
        if isinstance(change, Replaced):
            row = rows[index]
            new = row.text[: change.start] + change.text + row.text[change.end :]
            first, *more = new.split("\n")
            rows[index] = Row(first, row.original, True)
            added.setdefault((change.line, False), []).extend(Row(line, None, True) for line in more)
        elif isinstance(change, Inserted):
            indent = _indent(rows[index].text)
            new_rows = [Row(indent + line, None, True) for line in change.text.split("\n")]
            added.setdefault((change.line, change.before), []).extend(new_rows)
        else:
            gone = rows[index : change.last]
            if isinstance(change, Moved):
                added.setdefault((change.to, change.before), []).extend(_carried(gone, rows[change.to - 1]))
            for offset, row in enumerate(gone):
                text_left = _indent(row.text) + "pass" if offset == 0 else ""
                rows[index + offset] = Row(
                    text_left, row.original if isinstance(change, Dropped) else None, True
                )
    return [
        one
        for number, row in enumerate(rows, 1)
        for one in (*added.get((number, True), ()), row, *added.get((number, False), ()))
    ]


def _carried(moved: Sequence[Row], beside: Row) -> list[Row]:
    """The moved lines, with the indent of the line that they come to stand beside."""
    was, indent = _indent(moved[0].text), _indent(beside.text)
    return [
        Row(indent + row.text[len(was) :] if row.text.startswith(was) else row.text, row.original, True)
        for row in moved
    ]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
