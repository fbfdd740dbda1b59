"""`--format github`: workflow commands, which GitHub Actions shows beside the changed lines of a pull request."""

from __future__ import annotations

import os
from typing import TextIO

from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import MergedResults
from gradsight.model.finding import Finding
from gradsight.model.showing import visible
from gradsight.session.finding_text import place
from gradsight.session.shown_paths import shown_path

LEVELS = {"error": "error", "warning": "warning", "info": "notice", "hint": "notice"}


def write(gathered: MergedResults, documents: Documents, out: TextIO, color: str) -> None:
    """One command for each finding."""
    for finding in gathered.findings:
        out.write(command(finding, documents) + "\n")


def command(finding: Finding, documents: Documents) -> str:
    """A finding as a workflow command; its trail follows the message, a line for each step."""
    position = documents.position(finding.path, finding.span)
    span = position.span
    cell = f" (cell {position.cell})" if position.cell is not None else ""
    properties = {
        "title": f"{finding.code} {finding.name}",
        "file": shown_path(finding.path).replace(os.sep, "/"),
        "line": str(span.line),
        "endLine": str(span.end_line),
        "col": str(span.column + 1),
        "endColumn": str(span.end_column + 1),
    }
    if span.end_line != span.line:
        # Columns of a range over several lines are refused.
        del properties["col"], properties["endColumn"]
    steps = [f"{place(step.path, step.span, documents)}: {visible(step.message)}" for step in finding.related]
    message = "\n".join([f"{visible(finding.message)}{cell}", *steps])
    told = ",".join(f"{name}={_escaped(value, True)}" for name, value in properties.items())
    return f"::{LEVELS[finding.severity]} {told}::{_escaped(message)}"


def _escaped(text: str, is_property: bool = False) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped.replace(":", "%3A").replace(",", "%2C") if is_property else escaped
