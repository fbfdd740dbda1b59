"""What probes have shown about the findings of a file, and for how long it counts.

*Evidence* belongs to the functions that its places lie in: it dies when the code of one of them changes, and moves with
them when something else does.  A *unit* is the text of one function, or the text of a module outside its functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gradsight.model.finding import Finding, Related, Role
from gradsight.model.source import Span

Verdict = Literal["confirmed", "refuted", "not-reached", "seen"]
# The places of a trail that a fault can be told at.
CULPRITS = frozenset({"made", "written", "cut", "read"})
# Rules that speak of an error which torch raises by itself, so that a run without it refutes them.
RAISING = frozenset("GS101 GS102 GS103 GS106 GS401 GS402".split())


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of code that evidence rests on, and the lines it had; `is_module` for the code outside functions."""

    text: str
    lines: tuple[int, ...]
    is_module: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a probe showed about one finding.  `finding` is as it was told then, with the probe's own trail."""

    verdict: Verdict
    finding: Finding
    torch: str
    units: tuple[Unit, ...]
    said: str = ""
    """Torch's own message."""


class EvidenceBook:
    """The evidence of a session, by path."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Evidence]] = {}

    def record(self, path: str, fresh: Iterable[Evidence]) -> None:
        """Keep what a probe showed about a file; what it has nothing to say about stays as it was."""
        fresh = list(fresh)
        said = {_key(each.finding) for each in fresh if each.verdict != "not-reached"}
        silent = {_key(each.finding) for each in fresh}
        before = [
            each
            for each in self._kept.get(path, [])
            if _key(each.finding) not in said
            and not (each.verdict == "not-reached" and _key(each.finding) in silent)
        ]
        known = {_key(each.finding) for each in before}
        self._kept[path] = before + [
            each for each in fresh if each.verdict != "not-reached" or _key(each.finding) not in known
        ]

    def forget(self, path: str) -> None:
        """A file was closed."""
        self._kept.pop(path, None)

    def overlay(self, path: str, text: str, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """The findings as the evidence lets them appear: confirmed, withdrawn to a hint, or with what else was seen."""
        kept = self._kept.get(path)
        if not kept:
            return tuple(findings)
        alive = [(each, moved) for each in kept if (moved := _moved(each, text)) is not None]
        self._kept[path] = [each for each, _ in alive]
        by_place = {_key(moved): (each, moved) for each, moved in alive}
        shown = []
        for finding in findings:
            entry = by_place.pop(_key(finding), None)
            shown.append(finding if entry is None else told(finding, *entry))
        shown += [told(moved, each, moved) for each, moved in by_place.values() if each.verdict == "seen"]
        return tuple(sorted(shown, key=lambda each: (each.span.line, each.span.column, each.code)))


def told(finding: Finding, evidence: Evidence, moved: Finding) -> Finding:
    """A finding with what a probe showed about it."""
    data = {**finding.data, "verdict": evidence.verdict, "torch": evidence.torch, "said": evidence.said}
    if evidence.verdict in ("confirmed", "seen"):
        message = f"confirmed on torch {evidence.torch}: {finding.message}"
        return replace(finding, message=message, related=moved.related or finding.related, data=data)
    if evidence.verdict == "refuted":
        message = f"refuted: it ran on torch {evidence.torch} and the gradient was exact; predicted was: {finding.message}"
        return replace(finding, message=message, severity="hint", data=data)
    return replace(finding, data=data)


def shown_by_probe(finding: Finding) -> list[str]:
    """What a hover adds to a finding that was probed, in Markdown."""
    verdict, torch, said = (str(finding.data.get(key, "")) for key in ("verdict", "torch", "said"))
    if verdict == "not-reached":
        return ["", f"*The last probe (torch {torch}) did not come here.*"]
    if verdict == "refuted":
        return ["", f"*The last probe (torch {torch}) ran it, and the gradient was exact.*"]
    if verdict in ("confirmed", "seen") and said:
        return ["", f"torch {torch} said:", "", f"> {said.split(' Hint:')[0]}"]
    return []


def judge(
    findings: Sequence[Finding],
    document: Mapping[str, Any],
    visited: Mapping[str, Collection[int]],
    text: str,
    path: str,
) -> list[Evidence]:
    """What the document of a probe says about the findings of the file at `path`, whose text was run."""
    torch = str(document["torch"] or "").split("+")[0]
    last = text.count("\n") + 1
    faults = [_within(fault_finding(fault), path, last) for fault in document["faults"]]
    matched: set[int] = set()
    judged = []
    for finding in findings:
        match = next((index for index, fault in enumerate(faults) if same_fault(finding, fault)), None)
        if match is not None:
            matched.add(match)
            said = str(document["faults"][match]["evidence"].get("torch") or "")
            proven = replace(finding, related=faults[match].related)
            judged.append(_evidence("confirmed", proven, torch, text, said))
        else:
            verdict: Verdict = "refuted" if _is_refuted(finding, document, visited) else "not-reached"
            judged.append(_evidence(verdict, finding, torch, text))
    for index, fault in enumerate(faults):
        if index not in matched and fault.path == path:
            said = str(document["faults"][index]["evidence"].get("torch") or "")
            judged.append(_evidence("seen", fault, torch, text, said))
    return judged


def fault_finding(fault: Mapping[str, Any]) -> Finding:
    """A fault that a probe saw, as a finding."""
    related = []
    for step in fault["related"]:
        role: Role = step["role"]
        related.append(Related(role, _plain(step["message"]), str(step["filename"]), _span(step)))
    # How the places were reached comes after what happened there.
    related.sort(key=lambda step: step.role == "call")
    return Finding(
        code=str(fault["code"]),
        name=str(fault.get("name") or ""),
        message=_plain(fault["message"]),
        severity=fault["severity"],
        certainty="certain",
        path=str(fault["filename"]),
        span=_span(fault),
        related=tuple(_distinct(related)),
    )


def _within(fault: Finding, path: str, last: int) -> Finding:
    """A fault without the steps beyond the end of the file, where a made-up call may stand."""
    inside = tuple(step for step in fault.related if step.path != path or step.span.line <= last)
    return replace(fault, related=inside)


def units_of(text: str, lines: Iterable[int]) -> tuple[Unit, ...]:
    """The pieces of code that these lines lie in; none if the text does not parse."""
    functions = _functions(text)
    if functions is None:
        return ()
    rows = text.split("\n")
    found: dict[int, Unit] = {}
    for line in lines:
        # The outermost one: what a function does may rest on what is around it.
        start, end = min((each for each in functions if each[0] <= line <= each[1]), default=(0, 0))
        if start:
            found[start] = Unit("\n".join(rows[start - 1 : end]), tuple(range(start, end + 1)))
        else:
            found[0] = _outside(functions, rows)
    return tuple(found.values())


def same_fault(finding: Finding, fault: Finding) -> bool:
    """Whether a fault is the one that was predicted: the same rule, at the same place or with the same cause."""
    if finding.code != fault.code or finding.path != fault.path:
        return False
    if finding.span.line <= fault.span.line <= finding.span.end_line:
        return True
    culprits = {step.span.line for step in fault.related if step.role in CULPRITS}
    suspects = {step.span.line for step in finding.related if step.role in CULPRITS}
    return finding.span.line in culprits or fault.span.line in suspects


def _is_refuted(
    finding: Finding, document: Mapping[str, Any], visited: Mapping[str, Collection[int]]
) -> bool:
    """Whether the run came through every line that the finding speaks of, and torch raised nothing."""
    if finding.code not in RAISING or document["outcome"] not in ("clean", "faults"):
        return False
    places = [(finding.path, finding.span), *((step.path, step.span) for step in finding.related)]
    return all(
        any(span.line <= row <= span.end_line for row in visited.get(path, ())) for path, span in places
    )


def _evidence(verdict: Verdict, finding: Finding, torch: str, text: str, said: str = "") -> Evidence:
    lines = [finding.span.line, *(step.span.line for step in finding.related if step.path == finding.path)]
    return Evidence(verdict, finding, torch, units_of(text, lines), said)


def _moved(evidence: Evidence, text: str) -> Finding | None:
    """The finding of some evidence in its present place; None once one of its functions has changed."""
    places: dict[int, int] = {}
    for unit in evidence.units:
        now = _outside_now(unit, text) if unit.is_module else _function_now(unit, text)
        if now is None:
            return None
        places |= dict(zip(unit.lines, now))

    def shift(span: Span) -> Span:
        return span.moved(places.get(span.line, span.line) - span.line)

    finding = evidence.finding
    related = tuple(
        replace(step, span=shift(step.span)) if step.path == finding.path else step
        for step in finding.related
    )
    return replace(finding, span=shift(finding.span), related=related)


def _function_now(unit: Unit, text: str) -> tuple[int, ...] | None:
    """The lines of a function now, the nearest to where it was if there are twins; None if its text is gone."""
    starts = []
    at = text.find(unit.text)
    while at >= 0:
        end = at + len(unit.text)
        if (at == 0 or text[at - 1] == "\n") and text[end : end + 1] in ("", "\n"):
            starts.append(text.count("\n", 0, at) + 1)
        at = text.find(unit.text, at + 1)
    start = min(starts, key=lambda line: abs(line - unit.lines[0]), default=None)
    return None if start is None else tuple(range(start, start + len(unit.lines)))


def _outside_now(unit: Unit, text: str) -> tuple[int, ...] | None:
    """The lines outside functions now; None if they changed.  A text that does not parse changes nothing yet."""
    functions = _functions(text)
    if functions is None:
        return unit.lines
    now = _outside(functions, text.split("\n"))
    return now.lines if now.text == unit.text else None


def _outside(functions: Sequence[tuple[int, int]], rows: Sequence[str]) -> Unit:
    """A module without its functions, blank lines and comments."""
    inside = {row for start, end in functions for row in range(start, end + 1)}
    kept = [
        (number, row.rstrip())
        for number, row in enumerate(rows, 1)
        if number not in inside and row.strip() and not row.lstrip().startswith("#")
    ]
    return Unit("\n".join(row for _, row in kept), tuple(number for number, _ in kept), True)


def _functions(text: str) -> list[tuple[int, int]] | None:
    """First and last line of every function; None if the text does not parse."""
    import ast

    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return [
        (min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def _span(place: Mapping[str, Any]) -> Span:
    start, end = place["location"], place["end_location"]
    return Span(start["row"], start["column"] - 1, end["row"], end["column"] - 1)


def _plain(text: object) -> str:
    """Editors show messages as they are: code in them is not marked."""
    return str(text).replace("`", "")


def _key(finding: Finding) -> tuple[str, int]:
    return finding.code, finding.span.line


def _distinct(steps: Iterable[Related]) -> list[Related]:
    seen: dict[tuple[str, str, Span], Related] = {}
    for step in steps:
        seen.setdefault((step.role, step.path, step.span), step)
    return list(seen.values())
