"""A fault that a run or a watch saw, as text: laid out as a finding is, then what only torch and the run can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gradsight.model.finding import Finding
from gradsight.model.source import Span
from gradsight.rules import rule_of
from gradsight.session.finding_text import Run, Texts, lay_out, line_place
from gradsight.session.verdicts import fault_finding, place_span

MOST_FIX_LINES = 12
LONGEST_REMARK = 300
HAPPENED = {
    "made": "made",
    "saved": "saved",
    "written": "overwritten",
    "needed": "needed",
    "cut": "cut",
    "read": "read",
    "call": "called",
}
"""What happened at a step of the trail, by its role."""
NEXT = " -> "
"""Stands between the steps of a trail in one line."""


def fault_lines(
    fault: Mapping[str, Any], texts: Texts, width: int | None = None, *, says_torch: bool = True
) -> Iterator[list[Run]]:
    """The lines of one fault; what torch said is left out where it stands just above."""
    finding = _finding(fault, texts)
    yield from lay_out(
        finding, texts, remarks=_remarks(fault, finding, texts, says_torch=says_torch), width=width
    )


def torchs_words(message: str) -> list[Run]:
    """What torch said, in one line."""
    return [("  = torch: ", "path"), (shortened(message), "")]


def shortened(message: str) -> str:
    """A message in one line, without the hint that torch adds to it."""
    first = " ".join(message.split(" Hint:")[0].split())
    return first if len(first) <= LONGEST_REMARK else first[: LONGEST_REMARK - 1] + "…"


def _finding(fault: Mapping[str, Any], texts: Texts) -> Finding:
    """A fault as a finding; a place in a cell is a place in the module that the cells make together."""
    found = fault_finding(fault)
    cells = {_key(step): int(step.get("cell", 0)) for step in (fault, *fault["related"])}

    def joined(path: str, span: Span) -> Span:
        return texts.joined(path, cells.get((path, span), 0), span)

    related = tuple(replace(step, span=joined(step.path, step.span)) for step in found.related)
    return replace(found, span=joined(found.path, found.span), related=related)


def _key(step: Mapping[str, Any]) -> tuple[str, Span]:
    return str(step["filename"]), place_span(step)


def _remarks(
    fault: Mapping[str, Any], finding: Finding, texts: Texts, *, says_torch: bool
) -> Iterator[list[Run]]:
    """The trail in its order, what torch said of a fault, who saw it, and what to do."""
    yield from _trail(finding, texts)
    told = fault["evidence"].get("torch")
    if told and says_torch:
        yield torchs_words(str(told))
    if fault["evidence"].get("predicted"):
        went = (
            "the run confirms it"
            if fault["evidence"].get("confirmed")
            else "the run came here, and cannot judge it"
        )
        yield [("  = note: ", "path"), (f"found in the source; {went}", "")]
    if fault.get("rank") is not None:
        yield [("  = rank: ", "path"), (", ".join(str(rank) for rank in fault["rank"]), "")]
    advice = str(fault["evidence"].get("help") or rule_of(fault["code"]).advice)
    if advice:
        yield [("  = help: ", "good"), (advice, "")]
    if fault.get("fix"):
        yield from _fix(fault["fix"])


def _trail(finding: Finding, texts: Texts) -> Iterator[list[Run]]:
    """What happened one after the other, each with a place that can be followed; the excerpt has the order of the lines."""
    steps = [step for step in finding.related if step.role != "call"]
    own = finding.path, finding.span.line
    if any((step.path, step.span.line) != own for step in steps):
        said = [
            f"{HAPPENED.get(step.role, step.role)} {line_place(step.path, step.span, texts)}"
            for step in steps
        ]
        yield [("  = trail: ", "path"), (NEXT.join(dict.fromkeys(said)), "")]


def _fix(fix: Mapping[str, Any]) -> Iterator[list[Run]]:
    """A fix as a change of lines, when it is small enough to be read at a glance."""
    doubt = "" if fix["applicability"] == "safe" else " (review it before you apply it)"
    yield [("  = fix: ", "good"), (f"{fix['message']}{doubt}", "")]
    lines = fix["lines"]
    if not lines or len(lines) > MOST_FIX_LINES:
        return
    width = max(len(str(row)) for _, row, _ in lines)
    for sign, row, text in lines:
        yield [(f"  {row:>{width}} ", "gutter"), (f"{sign} {text}", "good" if sign == "+" else "error")]
