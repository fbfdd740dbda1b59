"""`--format sarif`: SARIF 2.1.0, for code scanning.  The trail of a finding is a thread flow through its places."""

from __future__ import annotations

import hashlib
import json
from typing import Any, TextIO

from gradsight.cli import sarif
from gradsight.cli.documents import Documents
from gradsight.cli.merge_results import MergedResults
from gradsight.model.finding import Finding
from gradsight.model.showing import visible
from gradsight.model.source import Span
from gradsight.rules import find
from gradsight.session.pages import page_url


def write(gathered: MergedResults, documents: Documents, out: TextIO, color: str) -> None:
    """One log with one run."""
    json.dump(log_of(gathered, documents), out, indent=2)
    out.write("\n")


def log_of(gathered: MergedResults, documents: Documents) -> dict[str, Any]:
    """The log as plain data."""
    codes = sorted({(finding.code, finding.name) for finding in gathered.findings})
    places = {code: index for index, (code, _) in enumerate(codes)}
    return sarif.log_of(
        [_rule(code, name) for code, name in codes],
        [_result(finding, places[finding.code], documents) for finding in gathered.findings],
        {"executionSuccessful": True},
    )


def _rule(code: str, name: str) -> dict[str, Any]:
    told: dict[str, Any] = {"id": code, "name": name}
    rule = find(code)
    if rule is not None:
        page = rule.page.strip()
        told |= {
            "shortDescription": sarif.message(rule.summary),
            "fullDescription": sarif.message(rule.summary),
            "help": {"text": page, "markdown": page},
            "helpUri": page_url(name),
        }
    return told


def _result(finding: Finding, rule: int, documents: Documents) -> dict[str, Any]:
    steps = [
        {**_location(step.path, step.span, documents), "message": sarif.message(visible(step.message))}
        for step in finding.related
    ]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": sarif.LEVELS[finding.severity],
        "message": sarif.message(visible(finding.message)),
        "locations": [_location(finding.path, finding.span, documents)],
        "partialFingerprints": {"gradsightFinding/v1": _fingerprint(finding, documents)},
        "properties": {"certainty": finding.certainty},
        **sarif.trail(steps),
    }


def _location(path: str, span: Span, documents: Documents) -> dict[str, Any]:
    position = documents.position(path, span)
    here = position.span
    region = sarif.region(here.line, here.column + 1, here.end_line, here.end_column + 1)
    location = sarif.location(path, region)
    if position.cell is not None:
        # Lines of a notebook count inside their cell.
        location["logicalLocations"] = [{"name": f"cell {position.cell}", "kind": "module"}]
    return location


def _fingerprint(finding: Finding, documents: Documents) -> str:
    """Stays when lines move: the rule, the file and the words of the line."""
    words = " ".join(documents.line(finding.path, finding.span.line).split())
    told = "\0".join([finding.code, sarif.artifact(finding.path)["uri"], words])
    return hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
