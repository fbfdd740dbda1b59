"""Findings in a text that is being edited: where they are now, and whether an edit may have undone them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradsight.model.finding import Finding
from gradsight.model.source import Span
from gradsight.session.buffer import Point, TextChange


@dataclass(frozen=True, slots=True)
class Shown:
    """A finding in its present place.  `is_touched`: a line it speaks of was edited since it was found."""

    finding: Finding
    is_touched: bool = False


def move(shown: tuple[Shown, ...], edit: TextChange, path: str) -> tuple[Shown, ...]:
    """The findings after an edit of the text at `path`; one whose own place was edited is gone."""
    if not shown:
        return shown
    after = edit.after()
    moved = []
    for one in shown:
        finding = one.finding
        span = moved_span(finding.span, edit, after) if finding.path == path else finding.span
        if span is None:
            continue
        related = []
        is_touched = one.is_touched or (finding.path == path and _meets_lines(finding.span, edit))
        for step in finding.related:
            if step.path != path:
                related.append(step)
                continue
            is_touched = is_touched or _meets_lines(step.span, edit)
            place = moved_span(step.span, edit, after)
            if place is not None:
                related.append(replace(step, span=place) if place != step.span else step)
        if span != finding.span or tuple(related) != finding.related:
            finding = replace(finding, span=span, related=tuple(related))
        moved.append(Shown(finding, is_touched))
    return tuple(moved)


def moved_span(span: Span, edit: TextChange, after: Point) -> Span | None:
    """Where a span is after an edit that ends at `after`; None if the edit reaches into it."""
    start, end = Point(span.line - 1, span.column), Point(span.end_line - 1, span.end_column)
    if edit.start >= end:
        return span
    if edit.end <= start:
        new_start, new_end = _moved(start, edit, after), _moved(end, edit, after)
        return Span(new_start.line + 1, new_start.column, new_end.line + 1, new_end.column)
    return None


def merge_broken(
    fresh: tuple[Finding, ...], before: tuple[Shown, ...], broken: tuple[Span, ...]
) -> tuple[Shown, ...]:
    """What to show of a text that does not parse as a whole.

    What the parts that parse say is fresh.  A finding from before stays if nothing it speaks of was edited since, or if
    it stands on a line that does not parse now: there the fresh answer knows nothing.
    """
    said = {(finding.code, finding.path, finding.span.line) for finding in fresh}
    kept = [
        one
        for one in before
        if (one.finding.code, one.finding.path, one.finding.span.line) not in said
        and (not one.is_touched or any(_share_line(one.finding.span, span) for span in broken))
    ]
    together = [*(Shown(finding) for finding in fresh), *kept]
    together.sort(
        key=lambda one: (one.finding.path, one.finding.span.line, one.finding.span.column, one.finding.code)
    )
    return tuple(together)


def _moved(point: Point, edit: TextChange, after: Point) -> Point:
    if point.line > edit.end.line:
        return Point(point.line + after.line - edit.end.line, point.column)
    return Point(after.line, after.column + point.column - edit.end.column)


def _meets_lines(span: Span, edit: TextChange) -> bool:
    """Whether an edit changes a line of the span; one that only adds lines before or after it does not."""
    first, last = span.line - 1, span.end_line - 1
    if edit.end.line < first or edit.start.line > last:
        return False
    if edit.end == Point(first, 0) and (edit.text == "" or edit.text.endswith(("\n", "\r"))):
        return edit.start.column != 0
    return True


def _share_line(one: Span, other: Span) -> bool:
    return one.line <= other.end_line and other.line <= one.end_line
