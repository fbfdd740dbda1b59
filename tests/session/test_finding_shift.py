"""Findings stay with the code they are about while it is edited."""

from __future__ import annotations

from gradsight.model.finding import Finding, Related
from gradsight.model.source import Span
from gradsight.session.buffer import Point, TextChange
from gradsight.session.finding_shift import Shown, merge_broken, move

HERE = "a.py"


def test_lines_added_above_move_a_finding_down() -> None:
    check(edit(1, 0, 1, 0, "new\nlines\n"), Span(7, 4, 7, 10))


def test_lines_removed_above_move_a_finding_up() -> None:
    check(edit(1, 0, 3, 0, ""), Span(3, 4, 3, 10))


def test_text_added_before_it_on_its_line_moves_it_right() -> None:
    check(edit(5, 0, 5, 0, "    "), Span(5, 8, 5, 14))


def test_a_line_broken_before_it_moves_it_to_the_next_line() -> None:
    check(edit(5, 4, 5, 4, "\n  "), Span(6, 2, 6, 8))


def test_edits_below_or_behind_it_leave_it_alone() -> None:
    check(edit(5, 10, 5, 10, "  # why"), Span(5, 4, 5, 10))
    check(edit(6, 0, 9, 0, ""), Span(5, 4, 5, 10))


def test_an_edit_inside_it_takes_it_away() -> None:
    check(edit(5, 6, 5, 6, "x"), None)
    check(edit(4, 0, 5, 5, ""), None)


def test_the_trail_moves_along() -> None:
    trail = (
        Related("saved", "kept here", HERE, Span(2, 0, 2, 5)),
        Related("made", "", "b.py", Span(1, 0, 1, 1)),
    )
    [moved] = move((Shown(finding(trail)),), edit(1, 0, 1, 0, "\n"), HERE)
    assert [step.span.line for step in moved.finding.related] == [3, 1]
    assert not moved.is_touched


def test_an_edit_on_a_line_of_the_trail_is_remembered() -> None:
    trail = (Related("saved", "kept here", HERE, Span(2, 0, 2, 5)),)
    [moved] = move((Shown(finding(trail)),), edit(2, 5, 2, 5, ".clone()"), HERE)
    assert moved.is_touched


def test_lines_added_or_removed_right_above_do_not_touch_it() -> None:
    for change in (edit(5, 0, 5, 0, "new\n"), edit(4, 0, 5, 0, ""), edit(3, 0, 5, 0, "other\r\n")):
        [moved] = move((Shown(finding()),), change, HERE)
        assert not moved.is_touched
        assert merge_broken((), (moved,), (Span(1, 0, 1, 1),)) == (moved,)


def test_what_reaches_its_line_touches_it() -> None:
    for change in (edit(4, 3, 5, 0, ""), edit(5, 0, 5, 0, "new\nif x: "), edit(5, 10, 5, 10, " + 1")):
        [moved] = move((Shown(finding()),), change, HERE)
        assert moved.is_touched


def test_in_a_broken_text_an_untouched_finding_stays() -> None:
    [kept] = merge_broken((), (Shown(finding()),), (Span(2, 0, 2, 1),))
    assert kept.finding == finding()


def test_in_a_broken_text_a_touched_finding_must_be_found_again() -> None:
    assert merge_broken((), (Shown(finding(), True),), (Span(2, 0, 2, 1),)) == ()


def test_a_touched_finding_on_a_line_that_does_not_parse_stays() -> None:
    assert len(merge_broken((), (Shown(finding(), True),), (Span(5, 0, 5, 1),))) == 1


def test_what_the_parsing_parts_say_is_said_once() -> None:
    assert len(merge_broken((finding(),), (Shown(finding()),), ())) == 1


def finding(related: tuple[Related, ...] = ()) -> Finding:
    return Finding("GS101", "inplace-on-saved", "m", "error", "certain", HERE, Span(5, 4, 5, 10), related)


def edit(line: int, column: int, end_line: int, end_column: int, text: str) -> TextChange:
    """An edit with lines counted from 1."""
    return TextChange(Point(line - 1, column), Point(end_line - 1, end_column), text)


def check(change: TextChange, expected: Span | None) -> None:
    """A finding on line 5, columns 4 to 10, is here after the edit."""
    moved = [one.finding.span for one in move((Shown(finding()),), change, HERE)]
    assert moved == ([expected] if expected is not None else [])
