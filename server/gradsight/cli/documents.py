"""The texts that findings lie in, for reports: read again only where there is something to show."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradsight.cli.checking import Result
from gradsight.model.settings import Settings
from gradsight.model.source import Source, Span
from gradsight.session.finding_text import Position
from gradsight.session.notebooks import JoinedCells, read_notebook
from gradsight.session.reading import Unreadable, decode, read_bytes, split_lines


@dataclass(frozen=True)
class Documents:
    """Texts by path; what came from standard input is `given`."""

    given: dict[str, str] = field(default_factory=dict)
    known: dict[str, tuple[Source, JoinedCells | None] | None] = field(default_factory=dict)
    lines_of: dict[str, list[str]] = field(default_factory=dict)
    settings: dict[str, Settings] = field(default_factory=dict)
    """The settings that each file was checked with."""
    keeps_fixes: bool = False
    """Whether fixes that were tried are kept for the next run."""
    tried: dict[str, Result] = field(default_factory=dict)
    """Results of files whose fixes were tried while they were analysed, by path."""

    def source(self, path: str) -> Source | None:
        """The source at a path as the engine saw it."""
        entry = self._entry(path)
        return entry[0] if entry is not None else None

    def position(self, path: str, span: Span) -> Position:
        """Where a span is for a reader."""
        entry = self._entry(path)
        cells = entry[1] if entry is not None else None
        if cells is None or not cells.cells:
            return Position(span)
        index, inside = cells.locate(span)
        return Position(inside, cells.cells[index].number)

    def joined(self, path: str, cell: int, span: Span) -> Span:
        """The span as the engine counts it, of one that a person counts inside the cell with this number."""
        entry = self._entry(path) if cell else None
        joined = entry[1] if entry is not None else None
        if joined is None:
            return span
        numbers = [each.number for each in joined.cells]
        return span.moved(joined.starts[numbers.index(cell)] - 1) if cell in numbers else span

    def line(self, path: str, number: int) -> str:
        """One line of the text, without its end; empty when there is none."""
        if path not in self.lines_of:
            source = self.source(path)
            self.lines_of[path] = split_lines(source.text) if source is not None else []
        lines = self.lines_of[path]
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def _entry(self, path: str) -> tuple[Source, JoinedCells | None] | None:
        if path not in self.known:
            self.known[path] = self._read(path)
        return self.known[path]

    def _read(self, path: str) -> tuple[Source, JoinedCells | None] | None:
        text: str | Unreadable | None = self.given.get(path)
        if text is None:
            data = read_bytes(path, self.settings.get(path, Settings()).most_bytes)
            text = decode(data) if isinstance(data, bytes) else data
        if isinstance(text, Unreadable):
            return None
        if path.endswith(".ipynb"):
            notebook = read_notebook(path, text)
            return None if isinstance(notebook, Unreadable) else (notebook.source, notebook)
        return Source(path, text), None
