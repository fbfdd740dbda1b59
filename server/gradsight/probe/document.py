"""The outcome of a probe as one JSON document: the machine-readable form of `gradsight run`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from gradsight.probe.outcome import Cancelled, CouldNotRun, Died, Observed, Outcome, Raised, TimedOut, kind_of

EXIT_CLEAN, EXIT_FAULTS, EXIT_COULD_NOT_RUN = 0, 1, 2

Document = dict[str, Any]


def document_of(outcome: Outcome) -> Document:
    """Everything a reader can ask of a probe, whatever its outcome."""
    report = _report_of(outcome)
    error = report.get("error")
    notes = [str(note) for note in report.get("notes", ())]
    if isinstance(outcome, TimedOut):
        notes.append(f"stopped after {outcome.seconds:g} s; what follows was seen until then")
    elif isinstance(outcome, Died):
        notes.append(outcome.reason)
        error = error or {"type": "Died", "message": outcome.reason, "location": None}
    elif isinstance(outcome, Cancelled):
        notes.append("cancelled")
    elif isinstance(outcome, CouldNotRun):
        error = {"type": "CouldNotRun", "message": outcome.reason, "location": None}
    if report.get("stopped"):
        notes.append(f"stopped after {report['stopped']}")
    if report.get("internal_error"):
        notes.append(
            f"a fault of gradsight kept part of the report back: {_last_line(report['internal_error'])}"
        )
    document = {
        "outcome": kind_of(outcome),
        "error": error,
        "caught": list(report.get("caught", ())),
        "faults": [finding_of(fault) for fault in report.get("faults", ())],
        "parameters": list(report.get("parameters", ())),
        "facts": list(report.get("facts", ())),
        "torch": report.get("torch"),
        "python": report.get("python"),
        "seconds": report.get("seconds"),
        "backwards": report.get("backwards"),
        "steps": report.get("steps"),
        "stopped": report.get("stopped") or None,
        "notes": notes,
    }
    return cast(Document, _finite(document))


def _finite(value: Any) -> Any:
    """The same with null for what JSON has no number for: the norm of a gradient that is NaN or infinite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def finding_of(fault: Mapping[str, Any]) -> dict[str, Any]:
    """A fault in the shape of a finding of `gradsight check`, with its evidence."""
    return {
        "code": fault["code"],
        "name": _name_of(fault["code"]),
        "message": fault["message"],
        "severity": fault["severity"],
        "certainty": fault["certainty"],
        "filename": fault["filename"],
        **({"cell": fault["cell"]} if "cell" in fault else {}),
        "location": fault["location"],
        "end_location": fault["end_location"],
        "related": list(fault["related"]),
        "fix": None,
        "evidence": fault["evidence"],
        **({"rank": fault["rank"]} if "rank" in fault else {}),
    }


def exit_code_of(document: Document) -> int:
    """0 clean, 1 faults or an error of the program, 2 when nothing can be said."""
    outcome = document["outcome"]
    if outcome == "clean":
        return EXIT_CLEAN
    if outcome in ("faults", "raised") or document["faults"]:
        return EXIT_FAULTS
    return EXIT_COULD_NOT_RUN


def _name_of(code: str) -> str:
    from gradsight.rules import rule_of

    return rule_of(code).name


def _report_of(outcome: Outcome) -> Mapping[str, Any]:
    if isinstance(outcome, (Observed, Raised)):
        return outcome.report
    if isinstance(outcome, (TimedOut, Died, Cancelled)):
        return outcome.report or {}
    return {}


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else ""
