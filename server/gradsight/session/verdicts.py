"""What a run says about the findings of a file: which it confirms, which it refutes, which it says nothing about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradsight.model.finding import CULPRITS, Finding, Related, Role
from gradsight.model.run_traces import RunTraces
from gradsight.model.source import Span
from gradsight.rules import ALL, kin_of, rule_of
from gradsight.session.evidence import ProbeEvidence, Verdict, evidence_of
from gradsight.session.refutation import doubt_about, went_right
from gradsight.session.traces import excludes, shows

Visited = Mapping[str, Collection[int]]
TOLD_BY_BOTH: tuple[Role, ...] = ("saved", "needed")
BAD_WRITES = frozenset(rule.code for rule in ALL if rule.is_bad_write)


def judge(
    findings: Sequence[Finding],
    document: Mapping[str, Any],
    visited: Visited,
    text: str,
    path: str,
    traces: RunTraces | None = None,
) -> list[ProbeEvidence]:
    """What the document of a probe says about the findings of the file at `path`, whose text was run."""
    traces = traces or RunTraces()
    torch = str(document["torch"] or "").split("+")[0]
    extent = f"in its first {document['stopped']}" if document.get("stopped") else ""
    last = text.count("\n") + 1
    faults = [_within(fault_finding(fault), path, last) for fault in document["faults"]]
    said = [str(fault["evidence"].get("torch") or "") for fault in document["faults"]]
    matched: set[int] = set()
    judged = []
    for finding in findings:
        if rule_of(finding.code).says_harmless:
            verdict = _harmless(finding, faults, document, visited, traces)
            judged.append(evidence_of(verdict, finding, torch, text, extent=extent))
            continue
        match = next(
            (index for index, fault in enumerate(faults) if same_fault(finding, fault, visited)), None
        )
        if match is not None:
            matched.add(match)
            proven = replace(finding, related=_in_known_words(faults[match], finding) or finding.related)
            judged.append(evidence_of("confirmed", proven, torch, text, said[match]))
        else:
            verdict, why = _unmatched(finding, document, visited, traces)
            judged.append(evidence_of(verdict, finding, torch, text, extent=extent, why=why))
    judged += [
        evidence_of("seen", fault, torch, text, said[index])
        for index, fault in enumerate(faults)
        if index not in matched and fault.path == path
    ]
    return judged


def _in_known_words(fault: Finding, finding: Finding) -> tuple[Related, ...]:
    """What a run saw, step by step; a step that was predicted keeps its words, so that a proof changes no sentence."""
    known = {(step.role, step.path, step.span.line): step.message for step in finding.related}
    return tuple(
        replace(step, message=known.get((step.role, step.path, step.span.line), step.message))
        for step in fault.related
    )


def visited_lines(report: Mapping[str, Any]) -> dict[str, set[int]]:
    """The lines that ran, as far as the agent noticed: those with operations, and those that bound a tensor."""
    visited = {str(name): set(rows) for name, rows in (report.get("visited") or {}).items()}
    for fact in report.get("facts") or ():
        visited.setdefault(str(fact["filename"]), set()).add(int(fact["line"]))
    return visited


def fault_finding(fault: Mapping[str, Any]) -> Finding:
    """A fault that a probe saw, as a finding."""
    related = []
    for step in fault["related"]:
        role: Role = step["role"]
        related.append(Related(role, str(step["message"]), str(step["filename"]), place_span(step)))
    # How the places were reached comes after what happened there.
    related.sort(key=lambda step: step.role == "call")
    return Finding(
        code=str(fault["code"]),
        name=str(fault.get("name") or ""),
        message=str(fault["message"]),
        severity=fault["severity"],
        certainty="certain",
        path=str(fault["filename"]),
        span=place_span(fault),
        related=tuple(_distinct(related)),
        data={"saved_as": str(fault["evidence"].get("saved_as") or "")},
    )


def same_fault(finding: Finding, fault: Finding, visited: Visited | None = None) -> bool:
    """Whether a fault is the one that was predicted: the same rule, at the same place or with the same cause."""
    if finding.path != fault.path:
        return False
    if finding.span.line <= fault.span.line <= finding.span.end_line:
        return fault.code in kin_of(finding.code)
    if finding.code != fault.code:
        return False
    same_cause = rule_of(finding.code).same_cause
    is_same = same_cause(finding, fault) if same_cause is not None else None
    if is_same is not None:
        return is_same
    if finding.span.line in fault.lines(*CULPRITS) or _is_call_of_layer(finding, fault):
        return True
    # A place behind the one where torch stopped was never reached.
    reached = {*fault.lines(), *(visited or {}).get(finding.path, ())}
    return fault.span.line in finding.lines(*CULPRITS) and finding.span.line in reached


def _is_call_of_layer(finding: Finding, fault: Finding) -> bool:
    """A layer that writes is blamed where it is made, and seen where it is called: what was saved and needed is the same."""
    return fault.span.line in finding.lines("call") and all(
        finding.lines(role) & fault.lines(role) for role in TOLD_BY_BOTH
    )


def _unmatched(
    finding: Finding, document: Mapping[str, Any], visited: Visited, traces: RunTraces
) -> tuple[Verdict, str]:
    """The verdict on a finding that no fault belongs to, and why it is none where it is none."""
    came_through = document["outcome"] in ("clean", "faults")
    rule = rule_of(finding.code)
    if shows(traces, finding) and (came_through or not rule.needs_whole_run):
        return "confirmed", ""
    if not _went_through(finding, visited):
        return "not-reached", ""
    if rule.torch_raises and not came_through:
        # A program that ended early might have raised it in a later round.
        return "not-reached", "the program ended before its end"
    if not rule.torch_raises and not (document["outcome"] == "clean" and excludes(traces, finding)):
        return "undecided", ""
    doubt = doubt_about(finding, traces.proof)
    return ("undecided", doubt) if doubt else ("refuted", "")


def _harmless(
    finding: Finding,
    faults: Sequence[Finding],
    document: Mapping[str, Any],
    visited: Visited,
    traces: RunTraces,
) -> Verdict:
    """The verdict on a hint that calls a write harmless."""
    for fault in faults:
        if fault.path == finding.path and fault.code in BAD_WRITES:
            if finding.span.line in {fault.span.line, *fault.lines("written")}:
                return "refuted"
    is_over = document["outcome"] in ("clean", "faults") and bool(document.get("backwards"))
    if not is_over or not _went_through(finding, visited):
        return "not-reached"
    return "confirmed" if went_right(traces.proof) else "undecided"


def _went_through(finding: Finding, visited: Visited) -> bool:
    """Whether a run came to every place that a finding speaks of."""
    places = [(finding.path, finding.span), *((step.path, step.span) for step in finding.related)]
    return all(
        any(span.line <= row <= span.end_line for row in visited.get(path, ())) for path, span in places
    )


def _within(fault: Finding, path: str, last: int) -> Finding:
    """A fault without the steps beyond the end of the file, where a made-up call may stand."""
    inside = tuple(step for step in fault.related if step.path != path or step.span.line <= last)
    return replace(fault, related=inside)


def place_span(place: Mapping[str, Any]) -> Span:
    """The span of a place that the agent names."""
    start, end = place["location"], place["end_location"]
    return Span(start["row"], start["column"] - 1, end["row"], end["column"] - 1)


def _distinct(steps: Iterable[Related]) -> list[Related]:
    seen: dict[tuple[str, str, Span], Related] = {}
    for step in steps:
        seen.setdefault((step.role, step.path, step.span), step)
    return list(seen.values())
