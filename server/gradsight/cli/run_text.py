"""`gradsight run` in words: each fault laid out as `check` lays out a finding, then what only a run can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from gradsight.cli.documents import Documents
from gradsight.cli.report_text import put
from gradsight.probe.document import Document
from gradsight.session.fault_text import fault_lines, shortened
from gradsight.session.finding_text import Run, TrailMark, excerpt, link_style, place, terminal_width
from gradsight.session.verdicts import place_span

MOST_PARAMETERS = 40
OUTCOMES = {
    "clean": "no fault seen",
    "raised": "the program raised",
    "timeout": "stopped at the time limit",
    "died": "the process died",
    "could-not-run": "could not run",
}
GRADIENT_STYLES = {"ok": "", "zero": "warning", "none": "warning"}


def write(document: Document, documents: Documents, out: TextIO, color: str = "auto") -> None:
    """The whole report."""
    lines: list[list[Run]] = []
    for fault in document["faults"]:
        lines += [*fault_lines(fault, documents), []]
    lines += _error(document, documents)
    lines += _parameters(document)
    lines += [[("note: ", "path"), (note, "")] for note in document["notes"]]
    if document["outcome"] != "could-not-run" or document["error"] is None:
        lines.append(_summary(document))
    put(lines, out, color)


def _error(document: Document, documents: Documents) -> Iterator[list[Run]]:
    """The error that ended the program, unless a fault has told it."""
    error = document["error"]
    if error is None or any(
        fault["evidence"].get("torch") == error["message"] for fault in document["faults"]
    ):
        return
    if document["outcome"] == "could-not-run":
        yield [("gradsight: ", "error"), (shortened(error["message"]), "")]
        return
    runs: list[Run] = [(f"{error['type']}", "error"), (f": {shortened(error['message'])}", "path")]
    if error.get("location") is None or not error.get("filename"):
        yield from [runs, []]
        return
    path = str(error["filename"])
    span = documents.joined(
        path, int(error.get("cell", 0)), place_span({"end_location": error["location"], **error})
    )
    yield [(f"{place(path, span, documents)}: ", link_style(path, span)), *runs]
    yield from excerpt(path, [TrailMark(span, "error", "^", "")], documents, terminal_width())
    yield []


def _parameters(document: Document) -> Iterator[list[Run]]:
    """The table of parameters.  Where the program did not come to its end, a gradient that is missing is no news."""
    rows: Sequence[Mapping[str, Any]] = document["parameters"]
    if document["outcome"] not in ("clean", "faults"):
        rows = [row for row in rows if row["grad"] != "none"]
    if not rows:
        return
    # Rows that need attention come first; equal rows keep their order.
    ordered = sorted(rows, key=lambda row: row["grad"] == "ok")
    cells = [
        (
            str(row["name"]),
            "×".join(str(extent) for extent in row.get("shape", ())) or "scalar",
            str(row["grad"]),
            "" if row["norm"] is None else f"{row['norm']:.3g}",
        )
        for row in ordered[:MOST_PARAMETERS]
    ]
    table = [("parameter", "shape", "gradient", "norm"), *cells]
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    for number, row in enumerate(table):
        styles = ["path"] * 4 if number == 0 else ["", "", GRADIENT_STYLES[row[2]], ""]
        padded = [f"{text:<{width}}" for text, width in zip(row, widths, strict=True)]
        yield [
            (text if column == 3 else f"{text}  ", style)
            for column, (text, style) in enumerate(zip(padded, styles, strict=True))
        ]
    if len(ordered) > MOST_PARAMETERS:
        yield [(f"… and {len(ordered) - MOST_PARAMETERS} more", "faint")]
    yield []


def _summary(document: Document) -> list[Run]:
    faults = len(document["faults"])
    outcome = document["outcome"]
    words = OUTCOMES.get(outcome, _counted(faults))
    if outcome == "raised" and document["error"] is not None:
        words = f"{words} {document['error']['type']}" + (f", {_counted(faults)} found" if faults else "")
    tail = [f"torch {document['torch']}"] if document["torch"] else []
    tail += [f"Python {document['python']}"] if document["python"] else []
    tail += [f"{document['seconds']:.1f} s"] if document["seconds"] is not None else []
    style = "good" if outcome == "clean" else "error"
    return [(words, style), (f" ({', '.join(tail)})" if tail else "", "")]


def _counted(faults: int) -> str:
    return f"{faults} fault{'s' if faults != 1 else ''}"
