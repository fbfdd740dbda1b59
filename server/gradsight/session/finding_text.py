"""A finding as text: its line, the excerpt of the source with the trail as labels below the lines they mark, and remarks.

The layout is made once, as runs of text with a style each.  The command line prints it, painted in a terminal; a watch in
the user's own process leaves it on an exception, plain, so nothing but the standard library is imported here.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from gradsight.model.finding import Finding, Related
from gradsight.model.showing import in_place
from gradsight.model.source import Span
from gradsight.rules import find
from gradsight.session.shown_paths import shown_path

Run = tuple[str, str]
NEAR = 1
TAB = 4
LONGEST_LINE = 160
LEAST_WORDS = 20
"""The fewest columns in which words are wrapped."""
ELLIPSIS = "..."
UNWRAPPED = 0
"""The width of what is no terminal: lines are as long as they are."""


@dataclass(frozen=True, slots=True)
class Position:
    """A span as a person counts it: in a notebook, inside the cell with this number."""

    span: Span
    cell: int | None = None


class Texts(Protocol):
    """The texts that findings lie in."""

    def line(self, path: str, number: int) -> str:
        """One line, without its end; empty when there is none."""

    def position(self, path: str, span: Span) -> Position:
        """Where a span is for a reader."""

    def joined(self, path: str, cell: int, span: Span) -> Span:
        """The span as the texts count it, of one that a person counts inside the cell with this number."""


@dataclass(frozen=True, slots=True)
class TrailMark:
    """A span to underline, and what to write after the line: the finding itself, or one step of its trail."""

    span: Span
    style: str
    character: str
    label: str


def plain(lines: Iterable[list[Run]]) -> list[str]:
    """The lines without their styles; nothing in them acts on a terminal."""
    return ["".join(in_place(text) for text, _ in line) for line in lines]


def headline(finding: Finding, texts: Texts, is_fixable: bool = False) -> list[Run]:
    """`file:1:2: error GS101 [*] message`."""
    return [
        (f"{place(finding.path, finding.span, texts)}: ", link_style(finding.path, finding.span)),
        (f"{finding.severity}", finding.severity),
        (f" {finding.code} ", "path"),
        *([("[*] ", "trail")] if is_fixable else []),
        (finding.message, ""),
    ]


def wrapped(runs: list[Run], width: int, indent: str = "  ") -> Iterator[list[Run]]:
    """A line whose last run goes on below, word by word, where the terminal is too narrow for it."""
    *before, (text, style) = runs
    used = sum(len(each) for each, _ in before)
    if not width or used + len(text) <= width:
        yield runs
        return
    from textwrap import wrap

    # With hardly any room left behind what stands before it, the text begins on a line of its own.
    start = " " * used if width - used >= LEAST_WORDS else None
    parts = wrap(
        text,
        max(LEAST_WORDS, width),
        initial_indent=indent if start is None else start,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    if start is None:
        yield before
    else:
        yield [*before, (parts.pop(0).strip(), style)]
    yield from ([(part, style)] for part in parts)


def lay_out(
    finding: Finding,
    texts: Texts,
    is_fixable: bool = False,
    remarks: Iterable[list[Run]] = (),
    width: int | None = None,
) -> Iterator[list[Run]]:
    """The lines of one finding; what else is to be said about it stands below its trail.  As wide as the terminal is, or as asked."""
    width = terminal_width() if width is None else width
    yield from wrapped(headline(finding, texts, is_fixable), width)
    here = [step for step in finding.related if step.path == finding.path]
    marks = [_step_mark(step) for step in here]
    own = TrailMark(finding.span, finding.severity, "^", "")
    yield from excerpt(finding.path, [own, *marks], texts, width)
    for path in dict.fromkeys(step.path for step in finding.related if step.path != finding.path):
        steps = [step for step in finding.related if step.path == path]
        yield [("  in ", "faint"), (place(path, steps[0].span, texts), link_style(path, steps[0].span))]
        yield from excerpt(path, [_step_mark(step) for step in steps], texts, width)
    yield from remarks
    if find(finding.code) is not None:
        yield [(f"  {finding.name}: gradsight explain {finding.code}", "faint")]


def excerpt(path: str, marks: list[TrailMark], texts: Texts, width: int) -> Iterator[list[Run]]:
    """The marked lines in order, each with its marks below; a gap between lines is shown as dots."""
    shown: dict[int, list[TrailMark]] = {}
    for mark in marks:
        if texts.line(path, mark.span.line).strip():
            shown.setdefault(mark.span.line, []).append(mark)
    positions = {line: texts.position(path, Span(line, 0, line, 0)) for line in shown}
    digits = max((len(str(position.span.line)) for position in positions.values()), default=1)
    blank = f"  {' ' * digits} | "
    has_cells = len({position.cell for position in positions.values()}) > 1
    previous = None
    for line in sorted(shown):
        here = positions[line]
        if has_cells and (previous is None or here.cell != positions[previous].cell):
            yield [(f"  {'.' * digits} cell {here.cell}", "gutter")]
        elif previous is not None and line > previous + NEAR:
            yield [(f"  {'.' * digits}", "gutter")]
        previous = line
        text = texts.line(path, line)
        spots = [(mark, *_columns(text, mark.span)) for mark in _merged(shown[line])]
        window = Window.around(text, min(start for _, start, _ in spots))
        yield [(f"  {here.span.line:>{digits}} | ", "gutter"), (window.shown(text), "")]
        for mark, start, length in spots:
            at, long = window.clip(start, length)
            runs: list[Run] = [(blank, "gutter"), (" " * at + mark.character * long, mark.style)]
            yield from labelled(runs, mark, len(blank) + at + long, width)


def labelled(runs: list[Run], mark: TrailMark, column: int, width: int) -> Iterator[list[Run]]:
    """A mark with its label behind it; on a narrow terminal the label goes on below, word by word."""
    if not mark.label:
        yield runs
        return
    if not width or column + 1 + len(mark.label) <= width:
        yield [*runs, (f" {mark.label}", mark.style)]
        return
    from textwrap import wrap

    yield runs
    indent = " " * (len(runs[0][0]) - 2)
    for part in wrap(
        mark.label, max(LEAST_WORDS, width - len(indent) - 4), break_long_words=False, break_on_hyphens=False
    ):
        yield [(f"{indent}| ", "gutter"), (part, mark.style)]


@lru_cache(maxsize=1)
def terminal_width() -> int:
    """The columns of the terminal that is written to."""
    if not sys.stdout.isatty():
        return UNWRAPPED
    return shutil.get_terminal_size((0, 0)).columns


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a long line that is shown, in screen columns; a short line is shown whole."""

    start: int
    end: int

    @classmethod
    def around(cls, text: str, column: int) -> Window:
        """The window that shows a place with something before and after it."""
        if len(text) <= LONGEST_LINE:
            return cls(0, LONGEST_LINE * TAB)
        start = max(0, column - LONGEST_LINE // 4)
        return cls(start, start + LONGEST_LINE)

    def shown(self, text: str) -> str:
        """What of the line is inside, with dots where something is left out."""
        line = text.expandtabs(TAB).rstrip()
        before = ELLIPSIS if self.start else ""
        after = ELLIPSIS if len(line) > self.end else ""
        return f"{before}{line[self.start : self.end]}{after}"

    def clip(self, start: int, length: int) -> tuple[int, int]:
        """A mark, moved and cut to what is shown."""
        lead = len(ELLIPSIS) if self.start else 0
        at = min(max(start, self.start), self.end) - self.start
        return at + lead, max(1, min(start + length, self.end) - max(start, self.start))


def place(path: str, span: Span, texts: Texts) -> str:
    """`file:row:column`, with the cell in between for notebooks."""
    position = texts.position(path, span)
    file = f"{shown_path(path)}:" if path else ""
    cell = f"cell {position.cell}:" if position.cell is not None else ""
    return f"{file}{cell}{position.span.line}:{position.span.column + 1}"


def line_place(path: str, span: Span, texts: Texts) -> str:
    """`file:row`, which terminals and editors make a link of; `cell 3, line 1` in a notebook."""
    position = texts.position(path, span)
    if position.cell is not None:
        return f"cell {position.cell}, line {position.span.line}"
    return f"{shown_path(path)}:{position.span.line}"


def _step_mark(step: Related) -> TrailMark:
    return TrailMark(step.span, "trail", "-", step.message)


def _merged(marks: list[TrailMark]) -> list[TrailMark]:
    """A step on the very span of the finding is written behind the finding's own mark."""
    own = next((mark for mark in marks if mark.character == "^"), None)
    if own is None:
        return marks
    same = [mark for mark in marks if mark is not own and mark.span == own.span]
    label = "; ".join(mark.label for mark in same)
    return [
        TrailMark(own.span, own.style, "^", label),
        *[mark for mark in marks if mark is not own and mark not in same],
    ]


def _columns(text: str, span: Span) -> tuple[int, int]:
    """Where a mark starts on the screen and how long it is; a span of several lines is marked to the end of its first."""
    end = span.end_column if span.end_line == span.line else len(text.rstrip())
    start = _screen_width(text[: span.column], 0)
    return start, max(1, _screen_width(text[span.column : end], start))


def _screen_width(text: str, start: int) -> int:
    """How many screen columns a piece of text takes."""
    if text.isascii() and "\t" not in text:
        return len(text)
    from unicodedata import combining, east_asian_width

    at = start
    for character in text:
        if character == "\t":
            at += TAB - at % TAB
        elif not combining(character):
            at += 2 if east_asian_width(character) in "WF" else 1
    return at - start


def link_style(path: str, span: Span | None = None) -> str:
    """The style of a place: a link to the line, for terminals that can follow one.  A notebook is opened as a whole.

    The terminal of VS Code finds places in the text by itself, with their lines; links to files it follows on a desktop only.
    """
    if os.environ.get("TERM_PROGRAM") == "vscode":
        return "path"
    line = f"#{span.line}" if span is not None and not path.endswith(".ipynb") else ""
    return f"link {Path(path).as_uri()}{line}" if os.path.isabs(path) else "path"
