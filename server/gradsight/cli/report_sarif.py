"""`--format sarif`: SARIF 2.1.0, for code scanning.  The trail of a finding is a thread flow through its places."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, TextIO

from gradsight import __version__
from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import Gathered
from gradsight.model.finding import Finding
from gradsight.model.source import Span
from gradsight.rules import find
from gradsight.session.pages import page_url

LEVELS = {"error": "error", "warning": "warning", "info": "note", "hint": "note"}
HOME = "https://github.com/gradsight/gradsight"


def write(gathered: Gathered, documents: Documents, out: TextIO, color: str) -> None:
    """One log with one run."""
    json.dump(log_of(gathered, documents), out, indent=2)
    out.write("\n")


def log_of(gathered: Gathered, documents: Documents) -> dict[str, Any]:
    """The log as plain data."""
    codes = sorted({(finding.code, finding.name) for finding in gathered.findings})
    places = {code: index for index, (code, _) in enumerate(codes)}
    driver = {
        "name": "gradsight",
        "semanticVersion": __version__,
        "informationUri": HOME,
        "rules": [_rule(code, name) for code, name in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"uri": Path(os.getcwd()).as_uri() + "/"}},
        "invocations": [{"executionSuccessful": True}],
        "results": [_result(finding, places[finding.code], documents) for finding in gathered.findings],
    }
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }


def _rule(code: str, name: str) -> dict[str, Any]:
    told: dict[str, Any] = {"id": code, "name": name}
    rule = find(code)
    if rule is not None:
        page = rule.page.strip()
        told |= {
            "shortDescription": {"text": rule.summary},
            "fullDescription": {"text": rule.summary},
            "help": {"text": page, "markdown": page},
            "helpUri": page_url(name),
        }
    return told


def _result(finding: Finding, rule: int, documents: Documents) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [_location(finding.path, finding.span, documents)],
        "partialFingerprints": {"gradsightFinding/v1": _fingerprint(finding, documents)},
        "properties": {"certainty": finding.certainty},
    }
    steps = [
        {**_location(step.path, step.span, documents), "message": {"text": step.message}}
        for step in finding.related
    ]
    if steps:
        result["relatedLocations"] = [{"id": index, **step} for index, step in enumerate(steps, 1)]
        flow = [{"location": step} for step in steps]
        result["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
    return result


def _location(path: str, span: Span, documents: Documents) -> dict[str, Any]:
    position = documents.position(path, span)
    here = position.span
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": _artifact(path),
            "region": {
                "startLine": here.line,
                "startColumn": here.column + 1,
                "endLine": here.end_line,
                "endColumn": here.end_column + 1,
            },
        }
    }
    if position.cell is not None:
        # Lines of a notebook count inside their cell.
        location["logicalLocations"] = [{"name": f"cell {position.cell}", "kind": "module"}]
    return location


def _artifact(path: str) -> dict[str, Any]:
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    if relative.startswith(".."):
        return {"uri": Path(path).as_uri()}
    return {"uri": Path(relative).as_posix(), "uriBaseId": "SRCROOT"}


def _fingerprint(finding: Finding, documents: Documents) -> str:
    """Stays when lines move: the rule, the file and the words of the line."""
    words = " ".join(documents.line(finding.path, finding.span.line).split())
    told = "\0".join([finding.code, _artifact(finding.path)["uri"], words])
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
