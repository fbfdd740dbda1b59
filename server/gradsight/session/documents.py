"""What is open: documents and notebooks, their text as it is now, and what was last said about it.

*Key* is the name by which an editor calls a document; *path* is where it lives, or its key if it lives nowhere.
*Edits* counts the changes of a document since it was opened: a report is fresh while the count has not moved.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gradsight.model.finding import Finding
from gradsight.model.report import Report
from gradsight.model.settings import Settings
from gradsight.model.source import Source, Span
from gradsight.session.analyser import DocumentAnalyser
from gradsight.session.buffer import Buffer, Point, TextChange
from gradsight.session.finding_shift import Shown, merge_broken, move
from gradsight.session.notebooks import Cell, JoinedCells, join_cells
from gradsight.session.options import Options


class Document:
    """An open text that is analysed as one module."""

    def __init__(
        self, key: str, path: str, version: int | None, text: str, analyser: DocumentAnalyser
    ) -> None:
        self.key = key
        self.path = path
        self.version = version
        self.analyser = analyser
        self.options = Options()
        """What the user has chosen for it; the session keeps it up to date."""
        self.settings: Settings | None = None
        """The settings of checking that hold for it; None: to be looked up, as something they rest on has changed."""
        self.edits = 0
        self.report: Report | None = None
        self.reported_at = -1
        self.saved_at = 0
        self.shown: tuple[Shown, ...] = ()
        self.asked: tuple[str, ...] = ()
        """Paths that were looked for on behalf of the last analysis, found or not."""
        self._source: Source | None = None
        self.buffer = Buffer(text)

    @property
    def source(self) -> Source:
        """The module to analyse."""
        if self._source is None:
            self._source = self._make_source()
        return self._source

    @property
    def is_fresh(self) -> bool:
        """Whether the last report is about the text as it is now."""
        return self.reported_at == self.edits

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What there is to show now, in its present place."""
        return tuple(one.finding for one in self.shown)

    def edit(self, edit: TextChange) -> None:
        """Change the text; findings move along."""
        clamped = TextChange(self.buffer.clamp(edit.start), self.buffer.clamp(edit.end), edit.text)
        if clamped.end < clamped.start:
            clamped = TextChange(clamped.end, clamped.start, edit.text)
        self.buffer.replace(clamped)
        self.shown = move(self.shown, clamped, self.path)
        self._changed()

    def replace_text(self, text: str) -> None:
        """Take a new text as a whole; findings stay where they are until the next report."""
        self.buffer.reset(text)
        self.shown = tuple(Shown(one.finding, True) for one in self.shown)
        self._changed()

    def outdate(self) -> None:
        """Something outside the text changed: settings, or a file that it imports."""
        self.edits += 1
        self.analyser.forget()

    def accept(self, report: Report, edits: int, asked: tuple[str, ...]) -> None:
        """Take the report on the text as it was after so many edits."""
        fresh = tuple(
            sorted(
                (*report.findings, *report.unused_suppressions),
                key=lambda finding: (finding.path, finding.span.line, finding.span.column, finding.code),
            )
        )
        if report.syntax_problems:
            broken = tuple(problem.span for problem in report.syntax_problems)
            self.shown = merge_broken(fresh, self.shown, broken)
        else:
            self.shown = tuple(Shown(finding) for finding in fresh)
        self.report, self.reported_at, self.asked = report, edits, asked

    def line_text(self, line: int) -> str:
        """A line of the analysed module, counted from 1, without its end."""
        return self.buffer.content(line - 1)

    def line_name(self, line: int) -> str:
        """A line as a person finds it: `line 7`; in a notebook `cell 3, line 2`."""
        return f"line {line}"

    def _make_source(self) -> Source:
        return Source(self.path, self.buffer.text)

    def _changed(self) -> None:
        self.edits += 1
        self._source = None


@dataclass(slots=True)
class OpenCell:
    """A cell of an open notebook."""

    key: str
    version: int | None
    buffer: Buffer
    is_code: bool = True
    was_run: bool = False
    """Whether a kernel has run it, as far as the editor tells."""


class Notebook(Document):
    """An open notebook: its code cells, joined in order, are one module."""

    def __init__(self, key: str, path: str, version: int | None, analyser: DocumentAnalyser) -> None:
        super().__init__(key, path, version, "", analyser)
        self.cells: list[OpenCell] = []
        self._joined: JoinedCells | None = None

    @property
    def joined(self) -> JoinedCells:
        """The module that the code cells make, and the way back."""
        if self._joined is None:
            cells = [
                Cell(index, cell.buffer.text) for index, cell in enumerate(self.cells, 1) if cell.is_code
            ]
            self._joined = join_cells(self.path, cells)
        return self._joined

    def code_cells(self) -> list[OpenCell]:
        """The cells that hold Python."""
        return [cell for cell in self.cells if cell.is_code]

    def cell(self, key: str) -> OpenCell | None:
        """The cell with this key."""
        return next((cell for cell in self.cells if cell.key == key), None)

    def edit_cell(self, cell: OpenCell, edit: TextChange) -> None:
        """Change the text of one cell; findings of the whole notebook move along."""
        start, end = cell.buffer.clamp(edit.start), cell.buffer.clamp(edit.end)
        if end < start:
            start, end = end, start
        offset = self.offset_of(cell)
        cell.buffer.replace(TextChange(start, end, edit.text))
        if offset is not None:
            joined = TextChange(
                Point(start.line + offset, start.column), Point(end.line + offset, end.column), edit.text
            )
            self.shown = move(self.shown, joined, self.path)
        self._changed()

    def reset_cell(self, cell: OpenCell, text: str) -> None:
        """Take a new text of one cell as a whole."""
        cell.buffer.reset(text)
        self.rearranged()

    def rearranged(self) -> None:
        """Cells came, went or moved: findings of before have no place any more."""
        self.shown = ()
        self._changed()

    def offset_of(self, cell: OpenCell) -> int | None:
        """How many joined lines come before a cell; None if it is not code."""
        cells = self.code_cells()
        if cell not in cells:
            return None
        return self.joined.starts[cells.index(cell)] - 1

    def line_text(self, line: int) -> str:
        cell, inside = self.locate_line(line)
        return cell.buffer.content(inside - 1) if cell is not None else ""

    def line_name(self, line: int) -> str:
        """Cells are counted as the editor counts them, texts among them."""
        cell, inside = self.locate_line(line)
        return f"cell {self.cells.index(cell) + 1}, line {inside}" if cell is not None else f"line {line}"

    def awaits_run(self, line: int) -> bool:
        """Whether the cell with a joined line has not been run, in a notebook of which something has been."""
        cell, _ = self.locate_line(line)
        return cell is not None and not cell.was_run and any(each.was_run for each in self.cells)

    def locate_line(self, line: int) -> tuple[OpenCell | None, int]:
        """The cell that holds a joined line, and the line in it, both counted from 1."""
        cells = self.code_cells()
        if not cells:
            return None, line
        index, inside = self.joined.cell_of(line)
        return cells[index], inside

    def locate(self, span: Span) -> tuple[OpenCell | None, Span]:
        """The cell that holds a joined span, and the span in it."""
        cell, inside = self.locate_line(span.line)
        return cell, span.moved(inside - span.line)

    def _make_source(self) -> Source:
        return self.joined.source

    def _changed(self) -> None:
        super()._changed()
        self._joined = None


@dataclass(slots=True)
class Open:
    """Everything that is open, by key; a cell's key leads to its notebook."""

    documents: dict[str, Document] = field(default_factory=dict)
    cells: dict[str, Notebook] = field(default_factory=dict)

    def find(self, key: str) -> Document | None:
        """The document with this key, or the notebook that holds the cell with this key."""
        return self.documents.get(key) or self.cells.get(key)

    def at_path(self, path: str) -> Document | None:
        """The open document that lives at a path."""
        return next((document for document in self.documents.values() if document.path == path), None)
