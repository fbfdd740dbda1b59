"""What the traces of a run say about a prediction that nobody raised an error for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradsight.model.finding import Finding
from gradsight.model.run_traces import RunTraces, Touch
from gradsight.rules import kin_of, rule_of
from gradsight.session.refutation import proof_of


def shows(traces: RunTraces, finding: Finding) -> bool:
    """Whether the run saw what a finding says, though it made no fault of it."""
    rows = range(finding.span.line, finding.span.end_line + 1)
    if any((code, finding.path, row) in traces.sighted for code in kin_of(finding.code) for row in rows):
        return True
    witness = rule_of(finding.code).shown_by
    return witness is not None and witness(traces, finding)


def excludes(traces: RunTraces, finding: Finding) -> bool:
    """Whether the run, which came through every place of a finding, shows that what it says did not happen."""
    witness = rule_of(finding.code).excluded_by
    return bool(traces.backwards) and witness is not None and witness(traces, finding)


def traces_of(report: Mapping[str, Any]) -> RunTraces:
    """The traces in the report of an agent."""
    books = report.get("training") or {}
    return RunTraces(
        frozenset((str(code), str(path), int(row)) for code, path, row in report.get("sighted") or ()),
        tuple(tuple(_touches(memory)) for memory in report.get("touches") or ()),
        tuple(report.get("parameters") or ()),
        tuple((int(steps), int(useful)) for steps, useful in books.get("optimizers") or ()),
        bool(books.get("cuts_in_loss", True)),
        int(report.get("backwards") or 0),
        proof_of(report),
    )


def _touches(memory: Iterable[Mapping[str, Any]]) -> Iterable[Touch]:
    for each in memory:
        yield Touch(
            str(each["filename"]),
            int(each["line"]),
            bool(each["wrote"]),
            int(each["first"]),
            int(each["last"]),
        )
