"""The text of an open document as lines, changed in place by edits.

*Line* here is counted from 0, as editors count; a line keeps its end.  Only LF, CR LF and CR end a line.
The last line never has an end: a text that ends with a newline has an empty last line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """A place between two characters: line from 0, column from 0 in code points."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class TextChange:
    """The text from `start` up to `end` is replaced by `text`."""

    start: Point
    end: Point
    text: str

    def after(self) -> Point:
        """Where the new text ends."""
        lines = split_keeping_ends(self.text)
        if len(lines) == 1:
            return Point(self.start.line, self.start.column + len(lines[0]))
        return Point(self.start.line + len(lines) - 1, len(lines[-1]))


class Buffer:
    """A text and its lines; an edit costs what it touches.

    `_mark` is a line and the offset at which it begins: the next edit is usually near the last one, and its offset is
    found by walking there from the mark.
    """

    __slots__ = ("_mark", "lines", "text")

    def __init__(self, text: str) -> None:
        self.lines = split_keeping_ends(text)
        self.text = text
        self._mark = (0, 0)

    def content(self, line: int) -> str:
        """A line without its end; empty outside the text."""
        return without_end(self.lines[line]) if 0 <= line < len(self.lines) else ""

    def clamp(self, point: Point) -> Point:
        """The nearest place that is in the text."""
        if point.line < 0:
            return Point(0, 0)
        if point.line >= len(self.lines):
            return self.end()
        return Point(point.line, min(max(0, point.column), len(self.content(point.line))))

    def end(self) -> Point:
        """The place after the last character."""
        return Point(len(self.lines) - 1, len(self.lines[-1]))

    def replace(self, edit: TextChange) -> None:
        """Apply an edit whose places are in the text."""
        first, last = edit.start.line, edit.end.line
        start = self._offset(first)
        begin = start + edit.start.column
        end = start + sum(map(len, self.lines[first:last])) + edit.end.column
        piece = self.lines[first][: edit.start.column] + edit.text + self.lines[last][edit.end.column :]
        # A CR and an LF that meet become one end of line.
        if first > 0 and piece.startswith("\n") and self.lines[first - 1].endswith("\r"):
            first -= 1
            start -= len(self.lines[first])
            piece = self.lines[first] + piece
        if piece.endswith("\r") and last + 1 < len(self.lines) and self.lines[last + 1].startswith("\n"):
            last += 1
            piece += self.lines[last]
        lines = split_keeping_ends(piece)
        if last + 1 < len(self.lines) and lines[-1] == "":
            lines.pop()
        self.text = self.text[:begin] + edit.text + self.text[end:]
        self.lines[first : last + 1] = lines
        self._mark = (first, start)

    def reset(self, text: str) -> None:
        """Take a new text as a whole."""
        self.lines = split_keeping_ends(text)
        self.text = text
        self._mark = (0, 0)

    def _offset(self, line: int) -> int:
        """The offset at which a line begins."""
        known, offset = self._mark
        if line < known // 2:
            known, offset = 0, 0
        if line >= known:
            return offset + sum(map(len, self.lines[known:line]))
        return offset - sum(map(len, self.lines[line:known]))


def split_keeping_ends(text: str) -> list[str]:
    """The lines of a text, each with its end, and the last line without one."""
    if "\r" not in text:
        lines = [f"{line}\n" for line in text.split("\n")]
        lines[-1] = lines[-1][:-1]
        return lines
    lines = _LINES.findall(text)
    if not lines or lines[-1][-1] in "\r\n":
        lines.append("")
    return lines


def without_end(line: str) -> str:
    """A line without the characters that end it."""
    if line.endswith("\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith(("\n", "\r")) else line
