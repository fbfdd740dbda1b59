"""Notebooks: code cells joined in order as one module, and places in it mapped back to their cell.

*Joined line* is a line of the module that the cells make together, *cell line* the same line counted inside its cell;
both start at 1.  Every cell line is exactly one joined line, so columns stay as they are.  What IPython understands and
Python does not (magics, shell escapes, help) is replaced on its line by something harmless.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from gradsight.model.source import Source, Span
from gradsight.session.reading import Unreadable, split_lines

# Cell magics whose body is Python and runs in the notebook's own namespace.
PYTHON_MAGICS = frozenset({"capture", "prun", "time", "timeit"})
_LINE_MAGIC = re.compile(r"^(\s*)(?:%|!|\?)")
_ASSIGNED_MAGIC = re.compile(r"^(\s*[\w.\[\], *]+?=\s*)(?:%[a-zA-Z]|!)")
_HELP = re.compile(r"^(\s*)[%\w.*\[\]]+\?{1,2}\s*$")


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its number among all cells of the notebook, from 1, and its text."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class JoinedCells:
    """One module made of cells, and the way back.  `starts[i]` is the joined line on which cell i begins."""

    source: Source
    cells: tuple[Cell, ...]
    starts: tuple[int, ...]

    def cell_of(self, line: int) -> tuple[int, int]:
        """The index (from 0) of the cell that holds a joined line, and the line inside that cell."""
        index = max(0, bisect_right(self.starts, line) - 1)
        return index, line - self.starts[index] + 1 if self.starts else line

    def locate(self, span: Span) -> tuple[int, Span]:
        """The index of the cell that holds the start of a joined span, and the span inside that cell."""
        index, line = self.cell_of(span.line)
        return index, span.moved(line - span.line)

    def joined_line(self, index: int, line: int) -> int:
        """The joined line of a line of the cell with this index."""
        return self.starts[index] + line - 1


def join_cells(path: str, cells: Sequence[Cell]) -> JoinedCells:
    """Code cells as one module that lives at `path`."""
    lines: list[str] = []
    starts = []
    for cell in cells:
        starts.append(len(lines) + 1)
        lines += without_magics(split_lines(cell.text))
    return JoinedCells(Source(path, "\n".join(lines) + "\n" if lines else ""), tuple(cells), tuple(starts))


def read_notebook(path: str, text: str) -> JoinedCells | Unreadable:
    """The Python cells of an .ipynb file; a notebook in another language has none."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as problem:
        return Unreadable(f"is not a notebook ({problem})")
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        return Unreadable("is not a notebook (it has no list of cells)")
    if not _speaks_python(content):
        return join_cells(path, [])
    found = []
    for number, cell in enumerate(cells, start=1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", "")
            if isinstance(source, list):
                source = "".join(part for part in source if isinstance(part, str))
            if isinstance(source, str):
                found.append(Cell(number, source))
    return join_cells(path, found)


def without_magics(lines: Sequence[str]) -> list[str]:
    """The lines of a cell with everything replaced that only IPython understands, one line for one line."""
    first = next((index for index, line in enumerate(lines) if line.strip()), None)
    if first is not None and lines[first].lstrip().startswith("%%"):
        magic = lines[first].lstrip()[2:].split(None, 1)
        if not magic or magic[0] not in PYTHON_MAGICS:
            return [""] * len(lines)
        return [*[""] * (first + 1), *without_magics(lines[first + 1 :])]
    if not any(mark in line for line in lines for mark in "%!?"):
        return list(lines)
    inside = _lines_inside_strings(lines)
    cleaned: list[str] = []
    continued = False
    for index, line in enumerate(lines):
        if continued:
            cleaned.append("")
            continued = line.endswith("\\")
            continue
        magic_line = None if index in inside else _without_magic(line, cleaned)
        cleaned.append(line if magic_line is None else magic_line)
        continued = magic_line is not None and line.endswith("\\")
    return cleaned


def _without_magic(line: str, before: Sequence[str]) -> str | None:
    """A harmless line in place of a magic; None when the line is Python's own."""
    assigned = _ASSIGNED_MAGIC.match(line)
    if assigned is not None:
        return f"{assigned.group(1)}None"
    plain = _LINE_MAGIC.match(line) or _HELP.match(line)
    if plain is None or _is_continuation(before):
        return None
    return f"{plain.group(1)}pass"


def _is_continuation(before: Sequence[str]) -> bool:
    """Whether the next line goes on with an open bracket or a backslash: there `%` is Python's own operator."""
    text = "\n".join(before)
    if text.endswith("\\"):
        return True
    opened = sum(text.count(mark) for mark in "([{")
    return opened > sum(text.count(mark) for mark in ")]}")


def _lines_inside_strings(lines: Sequence[str]) -> set[int]:
    """Lines that begin inside a string of several lines, where `%` and `!` mean nothing."""
    inside: set[int] = set()
    quote = ""
    for index, line in enumerate(lines):
        if quote:
            inside.add(index)
        at = 0
        while at < len(line):
            three = line[at : at + 3]
            if quote:
                if three == quote:
                    quote, at = "", at + 3
                    continue
                at += 2 if line[at] == "\\" else 1
            elif three in ('"""', "'''"):
                quote, at = three, at + 3
            elif line[at] in "\"'":
                end = line.find(line[at], at + 1)
                while end > 0 and line[end - 1] == "\\":
                    end = line.find(line[at], end + 1)
                at = end + 1 if end > 0 else len(line)
            elif line[at] == "#":
                break
            else:
                at += 1
    return inside


def _speaks_python(content: dict[str, object]) -> bool:
    metadata = content.get("metadata")
    if not isinstance(metadata, dict):
        return True
    for section, key in (("language_info", "name"), ("kernelspec", "language")):
        entry = metadata.get(section)
        if isinstance(entry, dict) and isinstance(entry.get(key), str):
            return bool(entry[key].lower() in ("python", "ipython"))
    return True
