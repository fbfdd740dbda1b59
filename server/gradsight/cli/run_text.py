"""`gradsight run` in words: each fault laid out as `check` lays out a finding, then what only a run can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TextIO

from gradsight.cli.documents import Documents
from gradsight.cli.report_text import Run, TrailMark, excerpt, lay_out, link_style, place, put
from gradsight.model.finding import Finding
from gradsight.model.source import Span
from gradsight.probe.document import Document
from gradsight.rules import rule_of
from gradsight.session.verdicts import fault_finding, place_span

MOST_FIX_LINES = 12
MOST_PARAMETERS = 40
LONGEST_REMARK = 300
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
        lines += [*lay_out(_finding(fault, documents), documents, remarks=remarks(fault)), []]
    lines += _error(document, documents)
    lines += _parameters(document)
    lines += [[("note: ", "path"), (note, "")] for note in document["notes"]]
    if document["outcome"] != "could-not-run" or document["error"] is None:
        lines.append(_summary(document))
    put(lines, out, color)


def remarks(fault: Mapping[str, Any]) -> list[list[Run]]:
    """What torch said of a fault, who saw it, and what to do."""
    lines: list[list[Run]] = []
    told = fault["evidence"].get("torch")
    if told:
        lines.append(torchs_words(str(told)))
    if fault.get("rank") is not None:
        lines.append([("  = rank: ", "path"), (", ".join(str(rank) for rank in fault["rank"]), "")])
    advice = rule_of(fault["code"]).advice
    if advice:
        lines.append([("  = help: ", "good"), (advice, "")])
    if fault.get("fix"):
        lines += _fix(fault["fix"])
    return lines


def torchs_words(message: str) -> list[Run]:
    """What torch said, in one line."""
    return [("  = torch: ", "path"), (_shortened(message), "")]


def _fix(fix: Mapping[str, Any]) -> Iterator[list[Run]]:
    """A fix as a change of lines, when it is small enough to be read at a glance."""
    doubt = "" if fix["applicability"] == "safe" else " (look at it before you take it)"
    yield [("  = fix: ", "good"), (f"{fix['message']}{doubt}", "")]
    lines = fix["lines"]
    if not lines or len(lines) > MOST_FIX_LINES:
        return
    width = max(len(str(row)) for _, row, _ in lines)
    for sign, row, text in lines:
        yield [(f"  {row:>{width}} ", "gutter"), (f"{sign} {text}", "good" if sign == "+" else "error")]


def _finding(fault: Mapping[str, Any], documents: Documents) -> Finding:
    """A fault as a finding; a place in a cell is a place in the module that the cells make together."""
    found = fault_finding(fault)
    cells = {_key(step): int(step.get("cell", 0)) for step in (fault, *fault["related"])}

    def joined(path: str, span: Span) -> Span:
        return documents.joined(path, cells.get((path, span), 0), span)

    related = tuple(replace(step, span=joined(step.path, step.span)) for step in found.related)
    return replace(found, span=joined(found.path, found.span), related=related)


def _key(step: Mapping[str, Any]) -> tuple[str, Span]:
    return str(step["filename"]), place_span(step)


def _error(document: Document, documents: Documents) -> Iterator[list[Run]]:
    """The error that ended the program, unless a fault has told it."""
    error = document["error"]
    if error is None or any(
        fault["evidence"].get("torch") == error["message"] for fault in document["faults"]
    ):
        return
    if document["outcome"] == "could-not-run":
        yield [("gradsight: ", "error"), (_shortened(error["message"]), "")]
        return
    runs: list[Run] = [(f"{error['type']}", "error"), (f": {_shortened(error['message'])}", "path")]
    if error.get("location") is None or not error.get("filename"):
        yield from [runs, []]
        return
    path = str(error["filename"])
    span = documents.joined(
        path, int(error.get("cell", 0)), place_span({"end_location": error["location"], **error})
    )
    yield [(f"{place(path, span, documents)}: ", link_style(path, span)), *runs]
    yield from excerpt(path, [TrailMark(span, "error", "^", "")], documents)
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


def _shortened(message: str) -> str:
    first = " ".join(message.split(" Hint:")[0].split())
    return first if len(first) <= LONGEST_REMARK else first[: LONGEST_REMARK - 1] + "…"
