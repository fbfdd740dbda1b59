"""The readable report of a probe: the source with its spans, one sentence why, one sentence what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gradsight.probe.document import Document
from gradsight.rules import rule_of

_STYLES = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan"}
_WORDS = {
    "made": "made here",
    "saved": "saved here",
    "written": "written here",
    "needed": "needed here",
    "cut": "cut here",
    "read": "read here",
    "call": "called here",
}
_STEP_STYLE = "bold blue"
_MOST_FIX_LINES = 12
_MOST_PARAMETERS = 40


@dataclass(frozen=True, slots=True)
class SourceMark:
    """One underlined span of the excerpt."""

    filename: str
    cell: int
    row: int
    column: int
    end_row: int
    end_column: int
    label: str
    style: str

    @property
    def is_main(self) -> bool:
        """Whether this is the place of the fault itself, and not a step of its trail."""
        return self.style != _STEP_STYLE


class Sources:
    """Lines of the files a report speaks of; the text of `-c` and of notebook cells is handed in."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._lines: dict[tuple[str, int], list[str]] = {
            (name, 0): text.splitlines() for name, text in (texts or {}).items()
        }

    def line(self, filename: str, cell: int, row: int) -> str:
        key = (filename, cell)
        if key not in self._lines:
            self._lines[key] = _read_lines(filename, cell)
        lines = self._lines[key]
        return lines[row - 1] if 0 < row <= len(lines) else ""


def _read_lines(filename: str, cell: int) -> list[str]:
    try:
        text = Path(filename).read_text("utf-8", "replace")
        if cell:
            source = json.loads(text)["cells"][cell - 1]["source"]
            text = "".join(source) if isinstance(source, list) else str(source)
    except (OSError, ValueError, KeyError, IndexError):
        return []
    return text.splitlines()


def print_document(document: Document, console: Console, sources: Sources, parameters: bool = True) -> None:
    """The whole report."""
    for fault in document["faults"]:
        _print_fault(fault, console, sources)
    _print_error(document, console, sources)
    if parameters and document["parameters"]:
        _print_parameters(document["parameters"], console)
    for note in document["notes"]:
        console.print(Text.assemble(("note: ", "bold"), note))
    console.print(_summary(document))


def _print_fault(fault: Mapping[str, Any], console: Console, sources: Sources) -> None:
    style = _STYLES.get(fault["severity"], "bold")
    title = Text.assemble((f"{fault['severity']}[{fault['code']}]", style), (f": {fault['message']}", "bold"))
    console.print(title)
    marks = _marks_of(fault, style)
    print_excerpt(marks, console, sources)
    # Remarks hang below the bar that the line numbers leave free.
    indent = " " * (max(len(str(mark.row)) for mark in marks) + 1)
    advice = rule_of(fault["code"]).advice
    torch_message = fault["evidence"].get("torch")
    if torch_message:
        console.print(Text.assemble((f"{indent}= torch: ", "bold"), _shorten(str(torch_message))))
    if fault.get("rank") is not None:
        ranks = fault["rank"]
        console.print(Text.assemble((f"{indent}= rank: ", "bold"), ", ".join(str(rank) for rank in ranks)))
    if advice:
        console.print(Text.assemble((f"{indent}= help: ", "bold green"), advice))
    if fault.get("fix"):
        _print_fix(fault["fix"], console, indent)
    console.print()


def _print_fix(fix: Mapping[str, Any], console: Console, indent: str) -> None:
    """The repair as a change of lines, when it is small enough to be read at a glance."""
    doubt = "" if fix["applicability"] == "safe" else " (look at it before you take it)"
    console.print(Text.assemble((f"{indent}= fix: ", "bold green"), f"{fix['message']}{doubt}"))
    lines = fix["lines"]
    if not lines or len(lines) > _MOST_FIX_LINES:
        return
    width = max(len(str(row)) for _, row, _ in lines)
    for sign, row, text in lines:
        style = "green" if sign == "+" else "red"
        console.print(Text.assemble((f"{row:>{width}} ", "bold blue"), (f"{sign} {text}", style)))


def _marks_of(fault: Mapping[str, Any], style: str) -> list[SourceMark]:
    marks = []
    main = _mark(fault, "", style)
    taken = set()
    for step in fault["related"]:
        where = (step["filename"], step.get("cell", 0), step["location"]["row"])
        label = step["message"] or _WORDS[step["role"]]
        if step["role"] == "call":
            label = f"{label}"
        if (
            where == (main.filename, main.cell, main.row)
            and not main.label
            and step["role"] in ("written", "cut", "made", "read")
        ):
            main = _mark(fault, label, style)
            continue
        if (where, label) in taken:
            continue
        taken.add((where, label))
        marks.append(_mark(step, label, _STEP_STYLE))
    return sorted(
        [main, *marks], key=lambda mark: (mark.filename != main.filename, mark.filename, mark.cell, mark.row)
    )


def _mark(place: Mapping[str, Any], label: str, style: str) -> SourceMark:
    start, end = place["location"], place["end_location"]
    return SourceMark(
        place["filename"],
        int(place.get("cell", 0)),
        start["row"],
        start["column"],
        end["row"],
        end["column"],
        label,
        style,
    )


def print_excerpt(marks: Sequence[SourceMark], console: Console, sources: Sources) -> None:
    """Source lines with their spans underlined, gaps between far lines shown as dots."""
    width = max((len(str(mark.row)) for mark in marks), default=1)
    current: tuple[str, int] | None = None
    last_row = 0
    for mark in marks:
        where = (mark.filename, mark.cell)
        if where != current:
            arrow = "-->" if current is None else ":::"
            cell = f" cell {mark.cell}" if mark.cell else ""
            head = next(
                (item for item in marks if item.is_main and (item.filename, item.cell) == where), mark
            )
            shown = f"{_short_path(mark.filename)}{cell}:{head.row}:{head.column}"
            console.print(Text.assemble((f"{' ' * width}{arrow} ", "bold blue"), shown))
            current, last_row = where, 0
            console.print(Text(f"{' ' * width} |", "bold blue"))
        if last_row and mark.row > last_row + 1:
            console.print(Text("...", "bold blue"))
        source = sources.line(mark.filename, mark.cell, mark.row)
        if mark.row != last_row:
            console.print(Text.assemble((f"{mark.row:>{width}} | ", "bold blue"), source.replace("\t", " ")))
        last_row = mark.row
        end = mark.end_column if mark.end_row == mark.row else len(source) + 1
        length = max(1, min(end, len(source) + 1) - mark.column)
        under = " " * (mark.column - 1) + ("^" if mark.is_main else "-") * length
        console.print(
            Text.assemble((f"{' ' * width} | ", "bold blue"), (f"{under} {mark.label}".rstrip(), mark.style))
        )


def _print_error(document: Document, console: Console, sources: Sources) -> None:
    error = document["error"]
    if error is None:
        return
    explained = any(fault["evidence"].get("torch") == error["message"] for fault in document["faults"])
    if explained:
        return
    console.print(
        Text.assemble((f"{error['type']}", "bold red"), (f": {_shorten(error['message'])}", "bold"))
    )
    if error.get("location") is not None and error.get("filename"):
        place = {"end_location": error["location"], **error}
        print_excerpt([_mark(place, "", "bold red")], console, sources)
    console.print()


def _print_parameters(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("parameter", "shape", "gradient", "norm"):
        table.add_column(name)
    # Rows that need attention come first; equal rows keep their order.
    ordered = sorted(rows, key=lambda row: row["grad"] == "ok")
    for row in ordered[:_MOST_PARAMETERS]:
        norm = "" if row["norm"] is None else f"{row['norm']:.3g}"
        style = {"ok": "", "zero": "yellow", "none": "yellow"}[row["grad"]]
        shape = "×".join(str(extent) for extent in row.get("shape", ())) or "scalar"
        table.add_row(Text(row["name"]), shape, Text(row["grad"], style), norm)
    console.print(table)
    if len(ordered) > _MOST_PARAMETERS:
        console.print(f"… and {len(ordered) - _MOST_PARAMETERS} more")
    console.print()


def _summary(document: Document) -> Text:
    faults = len(document["faults"])
    words = {
        "clean": "no fault seen",
        "faults": f"{faults} fault{'s' if faults != 1 else ''}",
        "raised": "the program raised",
        "timeout": "the time was over",
        "died": "the process died",
        "could-not-run": "could not run",
    }
    style = "bold green" if document["outcome"] == "clean" else "bold red"
    tail = []
    if document["torch"]:
        tail.append(f"torch {document['torch']}")
    if document["python"]:
        tail.append(f"Python {document['python']}")
    if document["seconds"] is not None:
        tail.append(f"{document['seconds']:.1f} s")
    return Text.assemble((words[document["outcome"]], style), f"  ({', '.join(tail)})" if tail else "")


def _shorten(message: str) -> str:
    first = " ".join(message.split(" Hint:")[0].split())
    return first if len(first) <= 300 else first[:299] + "…"


def _short_path(path: str) -> str:
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    return relative if not relative.startswith("..") else path
