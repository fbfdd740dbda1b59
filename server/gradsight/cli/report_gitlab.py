"""`--output-format gitlab`: a Code Quality report, which GitLab shows in merge requests."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, TextIO

from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import MergedResults
from gradsight.model.finding import Finding
from gradsight.session.shown_paths import shown_path

SEVERITIES = {"error": "major", "warning": "minor", "info": "info", "hint": "info"}


def write(gathered: MergedResults, documents: Documents, out: TextIO, color: str) -> None:
    """One array, also when there is nothing to say."""
    seen: dict[str, int] = {}
    json.dump([as_issue(finding, documents, seen) for finding in gathered.findings], out, indent=2)
    out.write("\n")


def as_issue(finding: Finding, documents: Documents, seen: dict[str, int]) -> dict[str, Any]:
    """One issue.  Its fingerprint rests on the text of the line, so that it is the same after the line has moved."""
    path = shown_path(finding.path).replace(os.sep, "/")
    position = documents.position(finding.path, finding.span)
    told = "\0".join((path, finding.code, documents.line(finding.path, finding.span.line).strip()))
    number = seen[told] = seen.get(told, 0) + 1
    fingerprint = hashlib.blake2b(f"{told}\0{number}".encode("utf-8", "surrogatepass"), digest_size=16)
    return {
        "description": f"{finding.code}: {finding.message}",
        "check_name": finding.code,
        "fingerprint": fingerprint.hexdigest(),
        "severity": SEVERITIES[finding.severity],
        "location": {
            "path": path,
            "positions": {
                "begin": {"line": position.span.line, "column": position.span.column + 1},
                "end": {"line": position.span.end_line, "column": position.span.end_column + 1},
            },
        },
    }
