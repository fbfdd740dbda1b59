"""What a watch says: the notes on an error, as `gradsight run` prints a fault and as HTML, with the lines of the user's program.

Everything here runs in the user's process: standard library only.
"""

from __future__ import annotations

import html
import linecache
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from gradsight.agent.faults import Fault
from gradsight.agent.sites import SourceRange
from gradsight.model.source import Span
from gradsight.probe.document import finding_of
from gradsight.session.fault_text import HAPPENED, fault_lines
from gradsight.session.finding_text import UNWRAPPED, Position, plain
from gradsight.session.shown_paths import shown_path

HEAD = "gradsight: "
"""How the first line of every note begins; editors look for it."""
_PLAIN_LETTERS = {ord("→"): "->", ord("…"): "..."}
_CELL_STRETCH = 1_000_000
"""More lines than a cell has."""


@dataclass(frozen=True)
class NoteLine:
    """One place of the story: its role, where it is, what stands there and what happened."""

    role: str
    place: str
    source: str
    message: str
    link: str = ""
    """The address that VS Code opens from the output of a cell."""


def lines_of(fault: Fault) -> list[NoteLine]:
    """The places of a fault in the order of the story."""
    lines = [_line(HAPPENED.get(step.role, step.role), step.place, step.message) for step in fault.related]
    if all(
        step.place.row != fault.place.row or step.place.filename != fault.place.filename
        for step in fault.related
    ):
        lines.insert(0, _line("here", fault.place, ""))
    return list(dict.fromkeys(lines))


def notes_of(fault: Fault) -> list[str]:
    """The notes of a fault (PEP 678), line by line, as `gradsight run` prints it; torch's own words stand above them."""
    first, *rest = plain(fault_lines(_as_document(fault), WatchedTexts(), UNWRAPPED, says_torch=False))
    return [f"{HEAD}{first}", *rest]


def _as_document(fault: Fault) -> dict[str, Any]:
    """A fault as a probe reports it, in letters that every log can take."""
    found = finding_of({**fault.as_json(), "code": rule_words(fault.kind)[0]})
    for step in (found, *found["related"]):
        step["message"] = str(step["message"]).translate(_PLAIN_LETTERS)
        if step.get("cell"):
            # The kernel does not know the name of its notebook.
            step["filename"] = ""
    return found


class WatchedTexts:
    """The user's files and cells as they were when they ran; each cell is a stretch of one long text."""

    def line(self, path: str, number: int) -> str:
        """One line, without its end; empty when there is none."""
        cell, row = divmod(number, _CELL_STRETCH)
        name = _CELL_FILES.get(cell, "") if cell else path
        return linecache.getline(name, row).rstrip("\r\n")

    def position(self, path: str, span: Span) -> Position:
        """Where a span is for a reader."""
        cell = span.line // _CELL_STRETCH
        return Position(span.moved(-cell * _CELL_STRETCH), cell) if cell else Position(span)

    def joined(self, path: str, cell: int, span: Span) -> Span:
        """The span in the one long text, of one inside a cell."""
        return span.moved(cell * _CELL_STRETCH)


def html_of(fault: Fault, *, is_vscode: bool = False) -> str:
    """The same for a notebook; everything of the user's is text in it.  In VS Code its places are links."""
    code, advice = rule_words(fault.kind)
    advice = str(fault.evidence.get("help") or advice)
    rows = "".join(
        "<tr>"
        f'<td style="text-align:left;padding:0 1em 0 0;opacity:.75">{html.escape(line.role)}</td>'
        f'<td style="text-align:left;padding:0 1em 0 0">{_linked(line, is_vscode)}</td>'
        f'<td style="text-align:left;padding:0"><code>{html.escape(line.source)}</code></td>'
        "</tr>"
        for line in lines_of(fault)
    )
    help_line = f"<div><b>help</b>: {_marked(advice)}</div>" if advice else ""
    return (
        '<div style="border-left:3px solid #d33;padding:.3em 0 .3em .8em;margin:.3em 0">'
        f"<div><b>GradSight {html.escape(code)}</b>: {_marked(fault.message)}</div>"
        f'<table style="margin:.3em 0;border:none">{rows}</table>{help_line}</div>'
    )


def _marked(sentence: str) -> str:
    """A sentence with its code marked as code; everything in it is text."""
    parts = sentence.split("`")
    # A sign that has no second one stays as it is.
    if len(parts) % 2 == 0:
        return html.escape(sentence)
    return "".join(
        f"<code>{html.escape(part)}</code>" if number % 2 else html.escape(part)
        for number, part in enumerate(parts)
    )


def _linked(line: NoteLine, is_vscode: bool) -> str:
    place = f"<code>{html.escape(line.place)}</code>"
    return f'<a href="{html.escape(line.link)}">{place}</a>' if is_vscode and line.link else place


@cache
def rule_words(kind: str) -> tuple[str, str]:
    """The code and the advice of the rule that this kind of fault belongs to."""
    from gradsight.rules import ALL

    for rule in ALL:
        if kind in rule.observed_as:
            return rule.code, rule.advice
    return kind, ""


def place_text(place: SourceRange) -> str:
    """Where it is, as terminals and editors make a link of it; a cell by its number."""
    if place.cell:
        return f"cell {place.cell}, line {place.row}"
    return f"{shown_path(place.filename)}:{place.row}"


def link_of(place: SourceRange) -> str:
    """What VS Code follows in the output of a notebook, as in the tracebacks that it shows: a cell by its execution count."""
    if place.cell:
        return f"vscode-notebook-cell:?execution_count={place.cell}&line={place.row}"
    return f"{place.filename}:{place.row}" if os.path.isabs(place.filename) else ""


def add_notes(error: BaseException, notes: Sequence[str]) -> None:
    """Leaves notes on an error; before Python 3.11 as the attribute that later ones print."""
    add: Any = getattr(error, "add_note", None)
    if add is not None:
        add("\n".join(notes))
    else:
        error.__dict__.setdefault("__notes__", []).append("\n".join(notes))


def _line(role: str, place: SourceRange, message: str) -> NoteLine:
    return NoteLine(role, place_text(place), source_line(place), message, link_of(place))


_CELL_FILES: dict[int, str] = {}


def remember_cell(number: int, filename: str) -> None:
    """The text of this cell of the notebook is found under this name."""
    _CELL_FILES[number] = filename


def source_line(place: SourceRange) -> str:
    """The line of the user's program at this place."""
    name = _CELL_FILES.get(place.cell, place.filename) if place.cell else place.filename
    return linecache.getline(name, place.row).strip()
