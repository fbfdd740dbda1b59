"""`--output-format rdjson`: the diagnostic format of reviewdog."""

from __future__ import annotations

import json
from typing import Any, TextIO

from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import MergedResults
from gradsight.model.finding import Finding
from gradsight.model.source import Span
from gradsight.rules import find
from gradsight.session.pages import page_url
from gradsight.session.shown_paths import shown_path

SEVERITIES = {"error": "ERROR", "warning": "WARNING", "info": "INFO", "hint": "INFO"}
HOME = "https://github.com/gradsight/gradsight"


def write(gathered: MergedResults, documents: Documents, out: TextIO, color: str) -> None:
    """One object with all findings."""
    told = {
        "source": {"name": "gradsight", "url": HOME},
        "severity": "WARNING",
        "diagnostics": [as_diagnostic(finding, documents) for finding in gathered.findings],
    }
    json.dump(told, out, indent=2)
    out.write("\n")


def as_diagnostic(finding: Finding, documents: Documents) -> dict[str, Any]:
    code: dict[str, str] = {"value": finding.code}
    if find(finding.code) is not None:
        code["url"] = page_url(finding.name)
    return {
        "message": finding.message,
        "severity": SEVERITIES[finding.severity],
        "code": code,
        "location": {
            "path": shown_path(finding.path),
            "range": as_range(finding.path, finding.span, documents),
        },
        "related_locations": [
            {
                "message": step.message,
                "location": {
                    "path": shown_path(step.path),
                    "range": as_range(step.path, step.span, documents),
                },
            }
            for step in finding.related
        ],
    }


def as_range(path: str, span: Span, documents: Documents) -> dict[str, Any]:
    inside = documents.position(path, span).span
    return {
        "start": {"line": inside.line, "column": inside.column + 1},
        "end": {"line": inside.end_line, "column": inside.end_column + 1},
    }
