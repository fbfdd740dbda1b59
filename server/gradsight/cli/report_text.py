"""`--output-format full`: each finding with its source excerpt, the trail as labels below the lines they mark.

The layout is made once, as runs of text with a style each.  A pipe gets the plain text; a terminal gets colours from
rich, which is imported only then.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TextIO

from gradsight.cli.checking import shown_path
from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import MergedResults
from gradsight.model.finding import Finding, Related
from gradsight.model.showing import in_place
from gradsight.model.source import Span
from gradsight.rules import find

Run = tuple[str, str]
STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold blue",
    "hint": "bold cyan",
    "path": "bold",
    "gutter": "dim cyan",
    "trail": "cyan",
    "faint": "dim",
    "good": "bold green",
}
ALARMS = ("error", "warning")
MOST_TRIED = 25
"""The most findings whose fixes are tried for a mark in a listing."""
NEAR = 1
TAB = 4
LONGEST_LINE = 160
LEAST_WORDS = 20
"""The fewest columns in which words are wrapped."""
ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class TrailMark:
    """A span to underline, and what to write after the line: the finding itself, or one step of its trail."""

    span: Span
    style: str
    character: str
    label: str


def write(gathered: MergedResults, documents: Documents, out: TextIO, color: str) -> None:
    """All findings, then one line that sums up."""
    fixable = fixable_findings(gathered, documents)
    lines: list[list[Run]] = []
    for finding in gathered.findings:
        lines += [*lay_out(finding, documents, finding in fixable.safe), []]
    lines += summary(gathered, fixable)
    put(lines, out, color)


@dataclass(frozen=True, slots=True)
class Fixable:
    """The findings that have a fix, by whether it is safe."""

    safe: tuple[Finding, ...] = ()
    unsafe: tuple[Finding, ...] = ()
    is_tried: bool = True
    """False: there are so many findings that nobody waits for their fixes to be tried."""

    def __str__(self) -> str:
        if not self.is_tried:
            return ", `gradsight fix --diff` shows what can be fixed"
        more = (
            f"{len(self.unsafe)}{' more' if self.safe else ' fixable'} with `--unsafe`" if self.unsafe else ""
        )
        safe = f"{len(self.safe)} fixable with `gradsight fix`" if self.safe else ""
        return "".join(f", {part}" for part in (safe, more) if part)


def fixable_findings(gathered: MergedResults, documents: Documents) -> Fixable:
    """The findings that have a fix."""
    alarms = [finding for finding in gathered.findings if finding.severity in ALARMS and find(finding.code)]
    if not 0 < len(alarms) <= MOST_TRIED:
        return Fixable(is_tried=not alarms)
    from gradsight.cli.fix_json import FixBook

    book = FixBook(documents)
    tried = [(finding, book.safety(finding)) for finding in alarms]
    return Fixable(
        tuple(finding for finding, safety in tried if safety == "safe"),
        tuple(finding for finding, safety in tried if safety == "unsafe"),
    )


def put(lines: list[list[Run]], out: TextIO, color: str) -> None:
    """Write lines out, painted where that is wanted."""
    lines = [[(in_place(text), style) for text, style in line] for line in lines]
    if wants_color(out, color):
        _paint(lines, out, forced=color == "always")
    else:
        out.write("".join("".join(text for text, _ in line) + "\n" for line in lines))


def headline(finding: Finding, documents: Documents, is_fixable: bool = False) -> list[Run]:
    """`file:1:2: error GS101 [*] message`."""
    return [
        (f"{place(finding.path, finding.span, documents)}: ", link_style(finding.path, finding.span)),
        (f"{finding.severity}", finding.severity),
        (f" {finding.code} ", "path"),
        *([("[*] ", "trail")] if is_fixable else []),
        (finding.message, ""),
    ]


def wrapped(runs: list[Run], indent: str = "  ") -> Iterator[list[Run]]:
    """A line whose last run goes on below, word by word, where the terminal is too narrow for it."""
    width = terminal_width()
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
    finding: Finding, documents: Documents, is_fixable: bool = False, remarks: Iterable[list[Run]] = ()
) -> Iterator[list[Run]]:
    """The lines of one finding; what else is to be said about it stands below its trail."""
    yield from wrapped(headline(finding, documents, is_fixable))
    here = [step for step in finding.related if step.path == finding.path]
    marks = [_step_mark(step) for step in here]
    own = TrailMark(finding.span, finding.severity, "^", "")
    yield from excerpt(finding.path, [own, *marks], documents)
    for path in dict.fromkeys(step.path for step in finding.related if step.path != finding.path):
        steps = [step for step in finding.related if step.path == path]
        yield [("  in ", "faint"), (place(path, steps[0].span, documents), link_style(path, steps[0].span))]
        yield from excerpt(path, [_step_mark(step) for step in steps], documents)
    yield from remarks
    if find(finding.code) is not None:
        yield [(f"  {finding.name}: gradsight explain {finding.code}", "faint")]


def excerpt(path: str, marks: list[TrailMark], documents: Documents) -> Iterator[list[Run]]:
    """The marked lines in order, each with its marks below; a gap between lines is shown as dots."""
    shown: dict[int, list[TrailMark]] = {}
    for mark in marks:
        if documents.line(path, mark.span.line).strip():
            shown.setdefault(mark.span.line, []).append(mark)
    positions = {line: documents.position(path, Span(line, 0, line, 0)) for line in shown}
    width = max((len(str(position.span.line)) for position in positions.values()), default=1)
    blank = f"  {' ' * width} | "
    has_cells = len({position.cell for position in positions.values()}) > 1
    previous = None
    for line in sorted(shown):
        here = positions[line]
        if has_cells and (previous is None or here.cell != positions[previous].cell):
            yield [(f"  {'.' * width} cell {here.cell}", "gutter")]
        elif previous is not None and line > previous + NEAR:
            yield [(f"  {'.' * width}", "gutter")]
        previous = line
        text = documents.line(path, line)
        spots = [(mark, *_columns(text, mark.span)) for mark in _merged(shown[line])]
        window = Window.around(text, min(start for _, start, _ in spots))
        yield [(f"  {here.span.line:>{width}} | ", "gutter"), (window.shown(text), "")]
        for mark, start, length in spots:
            at, long = window.clip(start, length)
            runs: list[Run] = [(blank, "gutter"), (" " * at + mark.character * long, mark.style)]
            yield from labelled(runs, mark, len(blank) + at + long)


def labelled(runs: list[Run], mark: TrailMark, column: int) -> Iterator[list[Run]]:
    """A mark with its label behind it; on a narrow terminal the label goes on below, word by word."""
    if not mark.label:
        yield runs
        return
    width = terminal_width()
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
    """The columns of the terminal that is written to; 0 for a pipe or a file."""
    if not sys.stdout.isatty():
        return 0
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


def place(path: str, span: Span, documents: Documents) -> str:
    """`file:row:column`, with the cell in between for notebooks."""
    position = documents.position(path, span)
    cell = f"cell {position.cell}:" if position.cell is not None else ""
    return f"{shown_path(path)}:{cell}{position.span.line}:{position.span.column + 1}"


def summary(gathered: MergedResults, fixable: Fixable) -> list[list[Run]]:
    """One line that sums up; none where only the findings are wanted."""
    return [] if gathered.is_quiet else [counted(gathered, fixable)]


def counted(gathered: MergedResults, fixable: Fixable) -> list[Run]:
    """How much was found, and how much of it can be fixed."""
    files = f"{gathered.checked} file{'' if gathered.checked == 1 else 's'}"
    counts = [
        (count, severity)
        for severity in ("error", "warning", "info", "hint")
        if (count := sum(finding.severity == severity for finding in gathered.findings))
    ]
    if not counts and not gathered.checked and gathered.looked_at:
        one = gathered.looked_at == 1
        read = "1 file" if one else f"{gathered.looked_at} files"
        return [(f"{read} checked, no torch in {'it' if one else 'them'}", "faint")]
    if not counts:
        return [(f"no findings in {files} with torch", "faint")]
    runs: list[Run] = []
    for count, severity in counts:
        plural = "" if count == 1 or severity == "info" else "s"
        runs += [(", ", "faint")] if runs else []
        runs.append((f"{count} {severity}{plural}", severity))
    return [*runs, (f" in {files} with torch{fixable}", "faint")]


def wants_color(out: TextIO, color: str) -> bool:
    """Whether to paint: on a terminal, unless the user says otherwise."""
    if color != "auto":
        return color == "always"
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


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


def _paint(lines: list[list[Run]], out: TextIO, forced: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=out, force_terminal=forced or None, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text.assemble(*((text, _style(style)) for text, style in line)))


def link_style(path: str, span: Span | None = None) -> str:
    """The style of a place: a link to the line, for terminals that can follow one.  A notebook is opened as a whole.

    The terminal of VS Code finds places in the text by itself, with their lines; links to files it follows on a desktop only.
    """
    if os.environ.get("TERM_PROGRAM") == "vscode":
        return "path"
    line = f"#{span.line}" if span is not None and not path.endswith(".ipynb") else ""
    return f"link {Path(path).as_uri()}{line}" if os.path.isabs(path) else "path"


def _style(style: str) -> str:
    """A style as rich spells it."""
    return f"bold {style}" if style.startswith("link ") else STYLES.get(style, "")
