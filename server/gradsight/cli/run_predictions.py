"""What `check` finds in a program that was run, where a run sees no fault by itself: a `detach()` on one of several paths, say.

A run knows what happened, and not what was meant.  A finding joins the report if the run confirms it, or came to its line and
shows nothing that speaks against it.  What torch would have raised is left out: it did not.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

from gradsight.cli.fix_json import FixBook
from gradsight.cli.opened import Opened, open_file
from gradsight.cli.report_json import as_json
from gradsight.model.finding import Finding
from gradsight.probe.outcome import Observed, Outcome
from gradsight.rules import rule_of
from gradsight.session.evidence import ProbeEvidence
from gradsight.session.proving import judged_by
from gradsight.session.verdicts import fault_finding, same_fault, visited_lines

MOST_FILES = 12
ALARMS = ("error", "warning")
log = logging.getLogger(__name__)


def with_predictions(document: Mapping[str, Any], outcome: Outcome, script: str | None) -> dict[str, Any]:
    """The document of a run, with the findings of `check` that it went through and cannot judge."""
    if script is None or not isinstance(outcome, Observed):
        return dict(document)
    visited = visited_lines(outcome.report)
    seen = [fault_finding(fault) for fault in document["faults"]]
    found: list[dict[str, Any]] = []
    for path in [script, *sorted(set(visited) - {script})][:MOST_FILES]:
        try:
            found += predictions_in(path, outcome, seen)
        except Exception:
            # A mistake of ours must not take the report of a long run away.
            if os.environ.get("GRADSIGHT_STRICT"):
                raise
            log.exception("the findings of %s could not be held against the run", path)
    outcome_now = "faults" if found and document["outcome"] == "clean" else document["outcome"]
    return {**document, "outcome": outcome_now, "faults": [*document["faults"], *found]}


def predictions_in(path: str, outcome: Outcome, seen: Sequence[Finding]) -> list[dict[str, Any]]:
    """The findings of one file that the run went through and did not see by itself, in the shape of faults."""
    opened = open_file(path) if os.path.isfile(path) and path.endswith(".py") else None
    if opened is None:
        return []
    alarms = [
        finding
        for finding in opened.findings
        if finding.severity in ALARMS and not any(is_told(finding, fault) for fault in seen)
    ]
    judged = judged_by(outcome, alarms, opened.source) if alarms else []
    return [fault_of(one, opened) for one in judged if stands(one)]


def is_told(finding: Finding, fault: Finding) -> bool:
    is_same_line = (finding.path, finding.span.line) == (fault.path, fault.span.line)
    return is_same_line or same_fault(finding, fault)


def stands(one: ProbeEvidence) -> bool:
    """Whether a run leaves a finding as it is, or confirms it."""
    if one.verdict == "confirmed":
        return True
    if one.verdict == "not-reached":
        return rule_of(one.finding.code).is_uncalled
    return one.verdict == "undecided" and not one.why and not rule_of(one.finding.code).torch_raises


def fault_of(one: ProbeEvidence, opened: Opened) -> dict[str, Any]:
    with FixBook(opened.documents) as fixes:
        told = as_json(one.finding, opened.documents, fixes)
    return {**told, "fix": None, "evidence": {"predicted": True, "confirmed": one.verdict == "confirmed"}}
