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
from gradsight.model.source import Source, Span
from gradsight.session.observed import ObservedBook
from gradsight.session.tried_fixes import TrialBook
from gradsight.session.units import CodeUnit, lines_now, units_of

Verdict = Literal["confirmed", "refuted", "not-reached", "undecided", "seen"]
"""Undecided: the run came here, and it cannot be judged, with the reason where there is one.  Seen: nobody had predicted it."""
SILENT: frozenset[Verdict] = frozenset({"not-reached", "undecided"})


@dataclass(frozen=True, slots=True)
class ProbeEvidence:
    """What a probe showed about one finding.  `finding` is as it was told then, with the probe's own trail."""

    verdict: Verdict
    finding: Finding
    torch: str
    units: tuple[CodeUnit, ...]
    said: str = ""
    """Torch's own message."""
    extent: str = ""
    """How far the run went, when it was not to its end: `in its first 3 steps`."""
    why: str = ""
    """What kept a run from deciding."""


class EvidenceBook:
    """The evidence of a session, by path."""

    def __init__(self) -> None:
        self._kept: dict[str, list[ProbeEvidence]] = {}
        self.trials = TrialBook()
        self.observed = ObservedBook()

    def record(self, path: str, fresh: Iterable[ProbeEvidence]) -> None:
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

    def verdict_on(self, source: Source, finding: Finding) -> Verdict | None:
        """What probes have shown about a finding of a text; None if nothing, or nothing that still counts."""
        for evidence in self._kept.get(source.path, ()):
            moved = _moved(evidence, source.text)
            if moved is not None and _key(moved) == _key(finding):
                return evidence.verdict
        return None

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
            elif not (_says_harmless(finding) and entry[0].verdict == "refuted"):
                shown.append(told(finding, *entry))
        for finding in findings:
            by_place.pop(_key(finding), None)
        shown += [told(moved, each, moved) for each, moved in by_place.values() if each.verdict == "seen"]
        return tuple(sorted(shown, key=lambda each: (each.span.line, each.span.column, each.code)))


def told(finding: Finding, evidence: ProbeEvidence, moved: Finding) -> Finding:
    """A finding with what a probe showed about it."""
    data = {
        **finding.data,
        "verdict": evidence.verdict,
        "torch": evidence.torch,
        "said": evidence.said,
        "why": evidence.why,
    }
    if _says_harmless(finding):
        return replace(finding, data=data)
    if evidence.verdict in ("confirmed", "seen"):
        message = f"{confirmed_on(evidence.torch)}: {finding.message}"
        return replace(finding, message=message, related=moved.related or finding.related, data=data)
    if evidence.verdict == "refuted":
        ran = f"it ran on torch {evidence.torch}{' ' if evidence.extent else ''}{evidence.extent}"
        message = f"refuted: {ran}, and the gradient was exact (predicted: {finding.message})"
        return replace(finding, message=message, severity="hint", data=data)
    return replace(finding, data=data)


def confirmed_on(torch: str) -> str:
    """What a confirmed finding's message begins with."""
    return f"confirmed on torch {torch}"


def in_two_lines(finding: Finding) -> str:
    """The message of a finding with the confirmation below it: a list of problems cuts a long line at its end."""
    told, _, message = finding.message.partition(": ")
    return f"{message}\n{told}" if told == confirmed_on(str(finding.data.get("torch"))) else finding.message


def shown_by_probe(finding: Finding) -> list[str]:
    """What a hover adds to a finding that was probed, in Markdown."""
    keys = ("verdict", "torch", "said", "why")
    verdict, torch, said, why = (str(finding.data.get(key, "")) for key in keys)
    if verdict == "not-reached" and not torch:
        return []
    if verdict == "not-reached":
        missed = f"got here, and {why}" if why else "did not get here"
        return ["", f"*The last run (torch {torch}) {missed}.*"]
    if verdict == "undecided":
        reason = f"cannot judge this: {why}" if why else "showed nothing that decides it"
        return ["", f"*The last run (torch {torch}) got here, and {reason}.*"]
    if verdict == "refuted" or (verdict == "confirmed" and _says_harmless(finding)):
        return ["", f"*The last run (torch {torch}) executed it, and the gradient was exact.*"]
    if verdict in ("confirmed", "seen") and said:
        return ["", f"torch {torch} said:", "", f"> {as_markdown(said.split(' Hint:')[0])}"]
    return []


def evidence_of(
    verdict: Verdict,
    finding: Finding,
    torch: str,
    text: str,
    said: str = "",
    extent: str = "",
    why: str = "",
) -> ProbeEvidence:
    """Evidence that rests on the functions which the places of a finding lie in."""
    lines = [finding.span.line, *(step.span.line for step in finding.related if step.path == finding.path)]
    return ProbeEvidence(verdict, finding, torch, units_of(text, lines), said, extent, why)


def _moved(evidence: ProbeEvidence, text: str) -> Finding | None:
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


def _says_harmless(finding: Finding) -> bool:
    from gradsight.rules import rule_of

    return rule_of(finding.code).says_harmless


def _key(finding: Finding) -> tuple[str, int]:
    return finding.code, finding.span.line
