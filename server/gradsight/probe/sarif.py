"""The document of a probe as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradsight import __version__
from gradsight.probe.document import Document

_LEVELS = {"error": "error", "warning": "warning", "info": "note", "hint": "note"}


def sarif_of(document: Document) -> dict[str, Any]:
    """One run with one result per fault; the trail is a thread flow."""
    faults = document["faults"]
    rules = {fault["code"]: {"id": fault["code"], "name": fault["name"] or fault["code"]} for fault in faults}
    error = document["error"]
    invocation: dict[str, Any] = {"executionSuccessful": document["outcome"] in ("clean", "faults")}
    if error is not None:
        invocation["toolExecutionNotifications"] = [
            {"level": "error", "message": {"text": f"{error['type']}: {error['message']}"}}
        ]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "gradsight",
                        "semanticVersion": __version__,
                        "rules": [rules[code] for code in sorted(rules)],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "invocations": [invocation],
                "results": [_result(fault) for fault in faults],
            }
        ],
    }


def _result(fault: Mapping[str, Any]) -> dict[str, Any]:
    steps = [*fault["related"]]
    return {
        "ruleId": fault["code"],
        "level": _LEVELS[fault["severity"]],
        "message": {"text": fault["message"]},
        "locations": [_location(fault)],
        "relatedLocations": [
            {**_location(step), "id": index, "message": {"text": f"{step['role']}: {step['message']}"}}
            for index, step in enumerate(steps)
        ],
        "codeFlows": [
            {
                "threadFlows": [
                    {
                        "locations": [
                            {"location": {**_location(step), "message": {"text": step["message"]}}}
                            for step in steps
                        ]
                    }
                ]
            }
        ]
        if steps
        else [],
        **({"fixes": [_fix(fault)]} if fault.get("fix") else {}),
        "properties": {"evidence": fault["evidence"]},
    }


def _fix(fault: Mapping[str, Any]) -> dict[str, Any]:
    fix = fault["fix"]
    return {
        "description": {"text": fix["message"]},
        "artifactChanges": [
            {
                "artifactLocation": {"uri": _uri(fault["filename"])},
                "replacements": [
                    {"deletedRegion": _region(edit), "insertedContent": {"text": edit["content"]}}
                    for edit in fix["edits"]
                ],
            }
        ],
    }


def _location(place: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(place["filename"])},
            "region": _region(place),
        }
    }


def _region(place: Mapping[str, Any]) -> dict[str, int]:
    return {
        "startLine": place["location"]["row"],
        "startColumn": place["location"]["column"],
        "endLine": place["end_location"]["row"],
        "endColumn": place["end_location"]["column"],
    }


def _uri(filename: str) -> str:
    if not os.path.isabs(filename):
        return filename
    relative = os.path.relpath(filename)
    return Path(filename).as_uri() if relative.startswith("..") else Path(relative).as_posix()
