"""Comments that silence findings: `# gradsight: ignore[GS101]` and `# noqa: GS101` on their line, and
`# gradsight: ignore-file[GS101]` in the whole file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gradsight.model.finding import Finding
from gradsight.model.settings import Settings
from gradsight.model.source import Source, Span

OWN = re.compile(r"#\s*gradsight:\s*ignore(-file)?(?:\[([^\]]*)\])?", re.IGNORECASE)
SHARED = re.compile(r"#\s*noqa:\s*((?:[A-Z]+[0-9]+[\s,]*)+)", re.IGNORECASE)
# What every such comment has, whatever else it says: looked for in the whole text before its lines are looked at.
_MENTION = re.compile(r"#[^\S\r\n]*(?:gradsight|noqa):", re.IGNORECASE)
_LINE_END = re.compile(r"\r\n|\r|\n")
UNUSED_CODE = "GS001"


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment: the codes it silences (empty = all) and where it stands."""

    codes: tuple[str, ...]
    span: Span
    own: bool
    is_for_file: bool = False

    def silences(self, finding: Finding) -> bool:
        """Whether a finding of the same file is silenced."""
        is_here = finding.span.line <= self.span.line <= finding.span.end_line
        return (is_here or self.is_for_file) and self.covers(finding.code)

    def covers(self, code: str) -> bool:
        """Whether a finding with this code is silenced."""
        return not self.codes or any(code.startswith(wanted) for wanted in self.codes)


def suppressions_in(source: Source) -> list[Suppression]:
    """All suppression comments of a text."""
    text = source.text
    found = []
    number, place = 1, 0
    for mention in _MENTION.finditer(text):
        if mention.start() < place:
            continue
        start = max(text.rfind("\n", 0, mention.start()), text.rfind("\r", 0, mention.start())) + 1
        number += _line_ends(text, place, start)
        end = _LINE_END.search(text, mention.end())
        place = end.start() if end is not None else len(text)
        line = text[start:place]
        own = OWN.search(line)
        if own is not None:
            codes = tuple(part.strip().upper() for part in (own.group(2) or "").split(",") if part.strip())
            span = Span(number, own.start(), number, own.end())
            found.append(Suppression(codes, span, True, bool(own.group(1))))
        shared = SHARED.search(line)
        if shared is not None:
            codes = tuple(
                code.upper()
                for code in re.findall(r"[A-Za-z]+[0-9]+", shared.group(1))
                if code.upper().startswith("GS")
            )
            if codes:
                found.append(Suppression(codes, Span(number, shared.start(), number, shared.end()), False))
    return found


def _line_ends(text: str, start: int, end: int) -> int:
    returns = text.count("\r", start, end)
    if not returns:
        return text.count("\n", start, end)
    return len(_LINE_END.findall(text, start, end))


def apply_suppressions(
    source: Source, findings: list[Finding], settings: Settings
) -> tuple[list[Finding], list[Finding]]:
    """The findings that remain, and one finding per comment that silenced nothing."""
    comments = suppressions_in(source)
    if not comments:
        return findings, []
    kept = []
    used: set[Suppression] = set()
    for finding in findings:
        cover = [
            comment for comment in comments if comment.silences(finding)
        ]  # fmt: skip
        if cover:
            used.update(cover)
        else:
            kept.append(finding)
    unused = [
        Finding(UNUSED_CODE, "unused-suppression", f"this comment silences nothing{_of(comment)}", "info", "certain", source.path, comment.span)
        for comment in comments
        if comment not in used and (not comment.codes or any(settings.wants(code) for code in comment.codes))
    ]  # fmt: skip
    return kept, unused


def _of(comment: Suppression) -> str:
    where = "in this file" if comment.is_for_file else "on this line"
    return f": no {', '.join(comment.codes)} {where}" if comment.codes else f" {where}"
