"""Repairs that are offered in a document, always computed on its text as it is now.

*Offer* is one entry of a menu: what it is for, and the edits it would make, once they are worked out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from gradsight.model.finding import Finding
from gradsight.model.fix import Edit, Fix, line_starts
from gradsight.model.report import Report
from gradsight.model.settings import Settings
from gradsight.model.source import Source, Span

if TYPE_CHECKING:
    from gradsight.session.documents import Document

Purpose = Literal["fix", "suppress", "rewrite", "fixAll"]
_ORDER: dict[Purpose, int] = {"fix": 0, "rewrite": 1, "suppress": 2, "fixAll": 3}
FIX_ALL = "fix all safe findings"
# What an in-place statement has in it, one way or another: an operator, an item that is assigned, a method, a flag by name
# or by its place, `out=`.
_IN_PLACE = re.compile(
    r"(?:[-+*/%@&|^]|<<|>>)=|\]\s*=(?!=)|^[^=()]*\][^=()]*=(?!=)|[^\W_]_\s*\(|inplace|\bTrue\b|\bout\s*="
)
_CONTINUED = re.compile(r"(?:[(\[{,\\]|[-+*/%@&|^=.])\s*(?:#.*)?$|^\s*(?:#.*)?$")
MOST_REMEMBERED = 200
MOST_WITH_EDITS = 20
ALARMS = ("error", "warning")
MOST_LINES = 40


@dataclass(frozen=True, slots=True)
class Offer:
    """One repair.  `finding` is what it repairs; `is_preferred` marks the one that a user most likely wants."""

    purpose: Purpose
    title: str
    edits: tuple[Edit, ...] | None
    """None: not worked out yet."""
    finding: Finding | None = None
    is_preferred: bool = False
    number: int = 0
    """Its place among the fixes of its finding: the same where the title has changed with the line."""
    mark: object = None
    """Equal for offers that change the code alike, and the same after the code has moved."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """A text with its report, and the means to try a changed text."""

    source: Source
    settings: Settings
    report: Report
    check: Callable[[Source], Report]
    others: tuple[Finding, ...] = ()
    """What the analyses of other documents found in this one."""

    def fixes(self, chosen: Sequence[Finding]) -> list[Offer]:
        """The repairs of the chosen findings, the preferred one of each first."""
        from gradsight.fixing import fixes_for

        return [
            Offer("fix", fix.title, fix.edits, finding, fix.preferred and fix.safety == "safe", number)
            for finding in chosen
            for number, fix in enumerate(
                fixes_for(self.source, finding, self.settings, check=self.check, report=self.report)
            )
        ]

    def suppressions(self, chosen: Sequence[Finding]) -> list[Offer]:
        """Comments that silence each of the chosen findings: on its line, and in its file."""
        from gradsight.fixing import suppress_edit, suppress_file_edit

        return [
            suppression(finding, fix, in_file)
            for finding in chosen
            for in_file, fix in (
                (False, suppress_edit(self.source, finding)),
                (True, suppress_file_edit(self.source, finding)),
            )
            if fix is not None
        ]

    def rewrites(self, span: Span) -> list[Offer]:
        """The in-place statement at a place, written out of place."""
        from gradsight.fixing import rewrites_at

        return [
            Offer("rewrite", fix.title, fix.edits) for fix in rewrites_at(self.source, span, self.settings)
        ]

    def fix_all(self) -> Offer | None:
        """All safe repairs at once; None if there is none."""
        from gradsight.fixes.difference import difference
        from gradsight.fixing import fix_all

        text, applied = fix_all(self.source, self.settings, check=self.check)
        if not applied:
            return None
        after = self._alarms(self.check(Source(self.source.path, text)))
        own = {
            (finding.code, finding.span.line, finding.span.column) for finding in self._alarms(self.report)
        }
        left = len(after) + sum(
            finding.severity in ALARMS and (finding.code, finding.span.line, finding.span.column) not in own
            for finding in self.others
        )
        fixes = f"{len(applied)} fix{'' if len(applied) == 1 else 'es'}"
        told = f"{fixes}, {f'{left} left, no safe fix' if left else 'nothing left'}"
        starts = line_starts(self.source.text)
        edits = tuple(
            Edit(_span(starts, patch.start, patch.end), patch.text)
            for patch in difference(self.source.text, text)
        )
        return Offer("fixAll", f"{FIX_ALL} ({told})", edits)

    def _alarms(self, report: Report) -> list[Finding]:
        return [
            finding
            for finding in report.findings
            if finding.path == self.source.path and finding.severity in ALARMS
        ]


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """What edits were worked out for: equal only for the same text, with nothing changed around it.

    A document counts among its edits what happens to its settings and to the files that it imports.
    """

    key: str
    edits: int
    source: Source
    settings: Settings | None

    @classmethod
    def of(cls, document: Document) -> DocumentVersion:
        """The version of a document as it is now."""
        return cls(document.key, document.edits, document.source, document.settings)


class OfferMemory:
    """Which fixes were offered for a piece of code, so that typing elsewhere does not cost working them out again.

    Only the titles hold over a change of the text; the edits count for the very version they were worked out for.
    """

    def __init__(self) -> None:
        self._known: dict[object, list[Offer]] = {}
        self._edits: dict[tuple[object, Span], tuple[DocumentVersion, list[Offer]]] = {}

    def recall(self, key: object) -> list[Offer] | None:
        """The offers under a key; None if they were never worked out."""
        return self._known.get(key)

    def recall_edits(self, key: object, place: Span, version: DocumentVersion) -> list[Offer] | None:
        """The offers for a place with their edits; None if they were worked out for another version, or never."""
        known = self._edits.get((key, place))
        return known[1] if known is not None and known[0] == version else None

    def remember(self, key: object, place: Span, version: DocumentVersion, offers: Sequence[Offer]) -> None:
        """Keep offers under a key, and their edits for this place in this version."""
        if len(self._known) >= MOST_REMEMBERED:
            self._known.pop(next(iter(self._known)))
        if len(self._edits) >= MOST_WITH_EDITS:
            self._edits.pop(next(iter(self._edits)))
        self._known[key] = [replace(offer, edits=None) for offer in offers]
        self._edits[key, place] = (version, list(offers))


def offer_key(document: Document, place: Finding | Span) -> object:
    """Equal for the same finding, or the same place, in a block of code that has not changed."""
    if isinstance(place, Span):
        first, block = _block(document, place.line)
        return (place.moved(-first), block)
    return (place.code, place.message, _block(document, place.span.line)[1])


def _block(document: Document, line: int) -> tuple[int, str]:
    """The first line and the text of the top-level statement around a line, as far as indentation tells."""
    first = line
    while first > 1 and not _is_top(document.line_text(first)):
        first -= 1
    last = line + 1
    count = document.source.text.count("\n") + 1
    while last <= count and not _is_top(document.line_text(last)):
        last += 1
    return first, "\n".join(document.line_text(number) for number in range(first, last))


def _is_top(line: str) -> bool:
    return bool(line) and line[0] not in " \t)]}#"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is offered at a place: what is known already, and what has to be worked out."""

    ready: tuple[Offer, ...]
    version: DocumentVersion
    fixes: tuple[tuple[object, Finding, int], ...] = ()
    """Each with its key, and the first line of the block around it."""
    rewrites: tuple[object, Span, int] | None = None
    suppressions: tuple[Finding, ...] = ()
    fix_all: bool = False

    @property
    def is_ready(self) -> bool:
        """Whether nothing has to be worked out."""
        return not (self.fixes or self.rewrites or self.suppressions or self.fix_all)

    def work(self, workshop: Workshop, memory: OfferMemory) -> list[Offer]:
        """Work out the rest, and remember it."""
        offers = list(self.ready)
        for key, finding, first in self.fixes:
            found = [_marked(offer, first) for offer in workshop.fixes([finding])]
            memory.remember(key, finding.span, self.version, found)
            offers += found
        if self.rewrites is not None:
            key, span, first = self.rewrites
            found = [_marked(offer, first) for offer in workshop.rewrites(span)]
            memory.remember(key, span, self.version, found)
            offers += found
        offers += workshop.suppressions(self.suppressions)
        if self.fix_all and (everything := workshop.fix_all()) is not None:
            offers.append(everything)
        return _once(offers)


def make_plan(
    document: Document,
    memory: OfferMemory,
    wanted: set[Purpose],
    asked: Span,
    chosen: Sequence[Finding],
    is_lazy: bool,
) -> Plan:
    """The plan for a place.  `is_lazy`: the edits are asked for later, so that titles are enough."""
    ready: list[Offer] = []
    fixes = []
    version = DocumentVersion.of(document)

    def known_offers(key: object, place: Span) -> list[Offer] | None:
        return memory.recall(key) if is_lazy else memory.recall_edits(key, place, version)

    for finding in chosen if "fix" in wanted else ():
        key = offer_key(document, finding)
        known = known_offers(key, finding.span)
        if known is None:
            fixes.append((key, finding, _block(document, finding.span.line)[0]))
        else:
            ready += [replace(offer, finding=finding) for offer in known]
    rewrites = None
    if "rewrite" in wanted and may_write_in_place(_statement_lines(document, asked)):
        place = offer_key(document, asked)
        known = known_offers(place, asked)
        if known is None:
            rewrites = (place, asked, _block(document, asked.line)[0])
        else:
            ready += known
    suppressed = tuple(chosen) if "suppress" in wanted else ()
    if is_lazy:
        ready += [suppression(finding, in_file=each) for finding in suppressed for each in (False, True)]
        suppressed = ()
    return Plan(tuple(_once(ready)), version, tuple(fixes), rewrites, suppressed, "fixAll" in wanted)


def _marked(offer: Offer, first: int) -> Offer:
    edits = tuple((edit.span.moved(-first), edit.text) for edit in offer.edits or ())
    return replace(offer, mark=edits or None)


def _once(offers: Sequence[Offer]) -> list[Offer]:
    """The offers as a menu shows them: fixes first, and no rewrite that a fix beside it does already."""
    fixes = {offer.mark for offer in offers if offer.purpose == "fix" and offer.mark is not None}
    kept = [offer for offer in offers if offer.purpose != "rewrite" or offer.mark not in fixes]
    return sorted(kept, key=lambda offer: _ORDER[offer.purpose])


def _statement_lines(document: Document, asked: Span) -> list[str]:
    """The lines of a place, with those before and behind it that belong to the same statements, as far as they show."""
    first, last = asked.line, asked.end_line
    while first > max(1, asked.line - MOST_LINES) and _CONTINUED.search(document.line_text(first - 1)):
        first -= 1
    while last < asked.end_line + MOST_LINES and _CONTINUED.search(document.line_text(last)):
        if last > document.source.text.count("\n"):
            break
        last += 1
    return [document.line_text(line) for line in range(first, last + 1)]


def suppression(finding: Finding, fix: Fix | None = None, in_file: bool = False) -> Offer:
    """The offer to silence a finding, on its line or in its file."""
    where = "in this file" if in_file else "on this line"
    return Offer(
        "suppress", f"ignore {finding.code} {where}", fix.edits if fix is not None else None, finding
    )


def may_write_in_place(lines: Sequence[str]) -> bool:
    """Whether a line looks as if it could write in place; a quick look that never misses one."""
    return any(_IN_PLACE.search(line) for line in lines)


def _span(starts: Sequence[int], start: int, end: int) -> Span:
    from bisect import bisect_right

    first, last = bisect_right(starts, start) - 1, bisect_right(starts, end) - 1
    return Span(first + 1, start - starts[first], last + 1, end - starts[last])
