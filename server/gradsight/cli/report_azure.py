"""`--output-format azure`: logging commands, which Azure Pipelines shows as issues of a run."""

from __future__ import annotations

from typing import TextIO

from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import MergedResults
from gradsight.model.finding import Finding
from gradsight.model.showing import visible
from gradsight.session.shown_paths import shown_path

ESCAPES = {"%": "%AZP25", ";": "%3B", "]": "%5D", "\r": "%0D", "\n": "%0A"}


def write(gathered: MergedResults, documents: Documents, out: TextIO, color: str) -> None:
    """One command for each finding."""
    for finding in gathered.findings:
        out.write(command(finding, documents) + "\n")


def command(finding: Finding, documents: Documents) -> str:
    """A finding as a logging command; Azure knows errors and warnings only."""
    position = documents.position(finding.path, finding.span)
    cell = f"cell {position.cell}: " if position.cell is not None else ""
    properties = {
        "type": "error" if finding.severity == "error" else "warning",
        "sourcepath": shown_path(finding.path),
        "linenumber": str(position.span.line),
        "columnnumber": str(position.span.column + 1),
        "code": finding.code,
    }
    told = "".join(f"{name}={escaped(value)};" for name, value in properties.items())
    return f"##vso[task.logissue {told}]{cell}{visible(finding.message)}"


def escaped(text: str) -> str:
    return "".join(ESCAPES.get(character, character) for character in text)
