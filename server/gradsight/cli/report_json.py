"""`--format json`: an array of findings, in ruff's field names and ours; rows and columns start at 1."""

from __future__ import annotations

import json
from typing import Any, TextIO

from gradsight.cli.documents import Documents
from gradsight.cli.fix_json import FixBook
from gradsight.cli.merge_results import MergedResults
from gradsight.model.finding import Finding
from gradsight.model.source import Span
from gradsight.rules import find
from gradsight.session.pages import page_url


def write(gathered: MergedResults, documents: Documents, out: TextIO, color: str) -> None:
    """One array, also when there is nothing to say."""
    with FixBook(documents) as fixes:
        told = [as_json(finding, documents, fixes) for finding in gathered.findings]
    json.dump(told, out, indent=2)
    out.write("\n")


def write_with_gaps(gathered: MergedResults, documents: Documents, out: TextIO) -> None:
    """One object: the findings, and for each file with torch what was not understood of it."""
    from gradsight.cli import report_gaps

    with FixBook(documents) as fixes:
        findings = [as_json(finding, documents, fixes) for finding in gathered.findings]
    told = {
        "findings": findings,
        "files": [
            report_gaps.as_json(result, documents)
            for result in gathered.results
            if not result.is_skipped and not result.unreadable
        ],
    }
    json.dump(told, out, indent=2)
    out.write("\n")


def as_json(finding: Finding, documents: Documents, fixes: FixBook) -> dict[str, Any]:
    """One finding; `cell` is there for notebooks only, and rows then count inside it."""
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "severity": finding.severity,
        "certainty": finding.certainty,
        "filename": finding.path,
        **_place(finding.path, finding.span, documents),
        "related": [
            {
                "role": step.role,
                "message": step.message,
                "filename": step.path,
                **_place(step.path, step.span, documents),
            }
            for step in finding.related
        ],
        "fix": fixes.fix_of(finding),
        "url": page_url(finding.name) if find(finding.code) is not None else None,
    }


def _place(path: str, span: Span, documents: Documents) -> dict[str, Any]:
    position = documents.position(path, span)
    place = {
        "location": {"row": position.span.line, "column": position.span.column + 1},
        "end_location": {"row": position.span.end_line, "column": position.span.end_column + 1},
    }
    return place if position.cell is None else {"cell": position.cell, **place}
