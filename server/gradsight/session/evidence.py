"""What probes have shown about the findings of a file, and for how long it counts.

*Evidence* belongs to the functions that its places lie in: it dies when the code of one of them changes, and moves with
them when something else does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gradsight.model.finding import Finding
from gradsight.model.showing import as_markdown
from gradsight.model.source import Span
from gradsight.session.observed import ObservedBook
from gradsight.session.trials import TrialBook
from gradsight.session.units import Unit, lines_now, units_of

Verdict = Literal["confirmed", "refuted", "not-reached", "undecided", "seen"]
"""Undecided: the run came through, and a probe sees nothing that would settle it.  Seen: nobody had predicted it."""
SILENT: frozenset[Verdict] = frozenset({"not-reached", "undecided"})
# Hints that say that a write is harmless: a run that agrees confirms them, one that does not makes them vanish.
HARMLESS = frozenset({"GS190"})


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a probe showed about one finding.  `finding` is as it was told then, with the probe's own trail."""

    verdict: Verdict
    finding: Finding
    torch: str
    units: tuple[Unit, ...]
    said: str = ""
    """Torch's own message."""
    extent: str = ""
    """How far the run went, when it was not to its end: `in its first 3 steps`."""


class EvidenceBook:
    """The evidence of a session, by path."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Evidence]] = {}
        self.trials = TrialBook()
        self.observed = ObservedBook()

    def record(self, path: str, fresh: Iterable[Evidence]) -> None:
        """Keep what a probe showed about a file; what it has nothing to say about stays as it was."""
        fresh = list(fresh)
        said = {_key(each.finding) for each in fresh if each.verdict not in SILENT}
        silent = {_key(each.finding) for each in fresh}
        before = [
            each
            for each in self._kept.get(path, [])
            if _key(each.finding) not in said
            and not (each.verdict in SILENT and _key(each.finding) in silent)
        ]
        known = {_key(each.finding) for each in before}
        self._kept[path] = before + [
            each for each in fresh if each.verdict not in SILENT or _key(each.finding) not in known
        ]

    def forget(self, path: str) -> None:
        """A file was closed."""
        self._kept.pop(path, None)
        self.trials.forget(path)
        self.observed.forget(path)

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
            entry = by_place.get(_key(finding))
            if entry is None:
                shown.append(finding)
            elif not (finding.code in HARMLESS and entry[0].verdict == "refuted"):
                shown.append(told(finding, *entry))
        for finding in findings:
            by_place.pop(_key(finding), None)
        shown += [told(moved, each, moved) for each, moved in by_place.values() if each.verdict == "seen"]
        return tuple(sorted(shown, key=lambda each: (each.span.line, each.span.column, each.code)))


def told(finding: Finding, evidence: Evidence, moved: Finding) -> Finding:
    """A finding with what a probe showed about it."""
    data = {**finding.data, "verdict": evidence.verdict, "torch": evidence.torch, "said": evidence.said}
    if finding.code in HARMLESS:
        return replace(finding, data=data)
    if evidence.verdict in ("confirmed", "seen"):
        message = f"confirmed on torch {evidence.torch}: {finding.message}"
        return replace(finding, message=message, related=moved.related or finding.related, data=data)
    if evidence.verdict == "refuted":
        ran = f"it ran on torch {evidence.torch}{' ' if evidence.extent else ''}{evidence.extent}"
        message = f"refuted: {ran} and the gradient was exact; predicted was: {finding.message}"
        return replace(finding, message=message, severity="hint", data=data)
    return replace(finding, data=data)


def shown_by_probe(finding: Finding) -> list[str]:
    """What a hover adds to a finding that was probed, in Markdown."""
    verdict, torch, said = (str(finding.data.get(key, "")) for key in ("verdict", "torch", "said"))
    if verdict == "not-reached":
        return ["", f"*The last probe (torch {torch}) did not come here.*"]
    if verdict == "undecided":
        return ["", f"*The last probe (torch {torch}) came here, and saw nothing that decides it.*"]
    if verdict == "refuted" or (verdict == "confirmed" and finding.code in HARMLESS):
        return ["", f"*The last probe (torch {torch}) ran it, and the gradient was exact.*"]
    if verdict in ("confirmed", "seen") and said:
        return ["", f"torch {torch} said:", "", f"> {as_markdown(said.split(' Hint:')[0])}"]
    return []


def evidence_of(
    verdict: Verdict, finding: Finding, torch: str, text: str, said: str = "", extent: str = ""
) -> Evidence:
    """Evidence that rests on the functions which the places of a finding lie in."""
    lines = [finding.span.line, *(step.span.line for step in finding.related if step.path == finding.path)]
    return Evidence(verdict, finding, torch, units_of(text, lines), said, extent)


def _moved(evidence: Evidence, text: str) -> Finding | None:
    """The finding of some evidence in its present place; None once one of its functions has changed."""
    places: dict[int, int] = {}
    for unit in evidence.units:
        now = lines_now(unit, text)
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


def _key(finding: Finding) -> tuple[str, int]:
    return finding.code, finding.span.line
