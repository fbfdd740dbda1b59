"""What a probe saw as SARIF: one result for each fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradsight.cli import sarif
from gradsight.probe.document import Document


def sarif_of(document: Document) -> dict[str, Any]:
    """One run with one result per fault; the trail is a thread flow."""
    faults = document["faults"]
    rules = {fault["code"]: {"id": fault["code"], "name": fault["name"] or fault["code"]} for fault in faults}
    error = document["error"]
    invocation: dict[str, Any] = {"executionSuccessful": document["outcome"] in ("clean", "faults")}
    if error is not None:
        said = sarif.message(f"{error['type']}: {error['message']}")
        invocation["toolExecutionNotifications"] = [{"level": "error", "message": said}]
    return sarif.log_of(
        [rules[code] for code in sorted(rules)], [_result(each) for each in faults], invocation
    )


def _result(fault: Mapping[str, Any]) -> dict[str, Any]:
    steps = [
        {**_location(step), "message": sarif.message(f"{step['role']}: {step['message']}")}
        for step in fault["related"]
    ]
    return {
        "ruleId": fault["code"],
        "level": sarif.LEVELS[fault["severity"]],
        "message": sarif.message(fault["message"]),
        "locations": [_location(fault)],
        **sarif.trail(steps),
        **({"fixes": [_fix(fault)]} if fault.get("fix") else {}),
        "properties": {"evidence": fault["evidence"]},
    }


def _fix(fault: Mapping[str, Any]) -> dict[str, Any]:
    fix = fault["fix"]
    replacements = [
        {"deletedRegion": _region(edit), "insertedContent": sarif.message(edit["content"])}
        for edit in fix["edits"]
    ]
    change = {"artifactLocation": sarif.artifact(fault["filename"]), "replacements": replacements}
    return {"description": sarif.message(fix["message"]), "artifactChanges": [change]}


def _location(place: Mapping[str, Any]) -> dict[str, Any]:
    return sarif.location(place["filename"], _region(place))


def _region(place: Mapping[str, Any]) -> dict[str, int]:
    start, end = place["location"], place["end_location"]
    return sarif.region(start["row"], start["column"], end["row"], end["column"])
