"""The deep look: contents of saved tensors, and the gradient the program would have without the fault.

The program runs once with checksums.  When contents changed, it runs again with every saved tensor copied: the gradients
of that run are what an out-of-place program gives, and a change that leaves them as they are is no fault.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradsight.probe import host
from gradsight.probe.host import Listener, private_folder
from gradsight.probe.outcome import Observed, Outcome, Raised, Streams
from gradsight.probe.request import ProbeRequest

_TOLERANCE = 1e-6
Runner = Callable[[ProbeRequest, Streams | None, Listener | None, threading.Event | None], Outcome]


def run(
    request: ProbeRequest,
    streams: Streams | None = None,
    listen: Listener | None = None,
    cancel: threading.Event | None = None,
    runner: Runner = host.run,
) -> Outcome:
    """One deep probe; the second and third run happen only when the first one asks for them."""
    with private_folder() as folder:
        gradients = str(Path(folder) / "gradients.pt")
        first = runner(replace(request, level="deep", gradients_to=gradients), streams, listen, cancel)
        if not isinstance(first, (Observed, Raised)):
            return first
        changed = [fault for fault in first.report["faults"] if fault["evidence"].get("content_changed")]
        if not changed and not isinstance(first, Raised):
            return _with_notes(first, ["contents of saved tensors were compared: none changed unnoticed"])
        reference = runner(
            replace(request, level="deep", clones=True, gradients_from=gradients), None, listen, cancel
        )
        if not isinstance(reference, (Observed, Raised)):
            return _with_notes(first, ["the comparison run did not finish; the gradients were not compared"])
        rows = {row["backward"]: row for row in reference.report.get("comparison") or ()}
        faults = [_judged(fault, rows) for fault in first.report["faults"]]
        kept = [fault for fault in faults if fault is not None]
        located = [_located(fault, request, cancel, runner) for fault in kept]
        report = {**first.report, "faults": located}
        if isinstance(first, Raised):
            return replace(first, report=_with_reference(report, reference.report))
        return replace(first, report=report)


def _judged(fault: Mapping[str, Any], rows: Mapping[int, Mapping[str, Any]]) -> dict[str, Any] | None:
    """A changed content with the difference it makes; None when it makes none."""
    if not fault["evidence"].get("content_changed"):
        return dict(fault)
    row = rows.get(fault["evidence"]["backward"])
    if row is None:
        return dict(fault)
    if row["error"] <= _TOLERANCE:
        return None
    evidence = {**fault["evidence"], "gradient_error": row["error"], "parameter": row["parameter"]}
    percent = row["error"] * 100
    message = f"{fault['message']} (gradient off by {percent:.3g} %)"
    return {**fault, "message": message, "evidence": evidence}


def _located(
    fault: dict[str, Any], request: ProbeRequest, cancel: threading.Event | None, runner: Runner
) -> dict[str, Any]:
    """The line that changed a content which no operator of torch wrote."""
    evidence = fault["evidence"]
    if not evidence.get("content_changed") or evidence.get("writer_known"):
        return fault
    outcome = runner(replace(request, level="deep", watch=evidence["saved_index"]), None, None, cancel)
    if not isinstance(outcome, (Observed, Raised)) or not outcome.report.get("changed_at"):
        return fault
    place = outcome.report["changed_at"]
    written = {"role": "written", "message": "the content changes on this line", **place}
    return {**fault, **place, "related": [*fault["related"], written]}


def _with_reference(report: dict[str, Any], reference: Mapping[str, Any]) -> dict[str, Any]:
    if reference["error"] is None:
        note = "with a copy of every saved tensor the program runs: the fault is the write, not the graph"
        return {**report, "notes": [*report["notes"], note]}
    return report


def _with_notes(outcome: Observed | Raised, notes: list[str]) -> Outcome:
    return replace(outcome, report={**outcome.report, "notes": [*outcome.report["notes"], *notes]})
