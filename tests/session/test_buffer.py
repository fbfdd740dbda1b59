"""The buffer holds the text that an editor shows, whatever is typed and however lines end."""

from __future__ import annotations

import random
import re

import pytest

from gradsight.session.buffer import Buffer, Point, TextChange, split_keeping_ends

PIECES = ["a", "x = 1", "\n", "\r\n", "\r", "", "😀", "é", "\t", "\x0c", "\u2028", "\n\n", "b\r", "\nc"]


def test_lines_end_at_line_feeds_and_carriage_returns_only() -> None:
    assert split_keeping_ends("a\nb\r\nc\rd") == ["a\n", "b\r\n", "c\r", "d"]
    assert split_keeping_ends("a\x0cb\u2028c\x85d") == ["a\x0cb\u2028c\x85d"]


def test_the_last_line_has_no_end() -> None:
    assert split_keeping_ends("") == [""]
    assert split_keeping_ends("a\n") == ["a\n", ""]
    assert split_keeping_ends("a\r") == ["a\r", ""]


def test_a_place_outside_the_text_is_the_nearest_one_in_it() -> None:
    buffer = Buffer("ab\r\ncd")
    assert buffer.clamp(Point(0, 99)) == Point(0, 2)
    assert buffer.clamp(Point(7, 0)) == Point(1, 2)
    assert buffer.clamp(Point(-1, 3)) == Point(0, 0)


def test_an_edit_knows_where_its_text_ends() -> None:
    assert TextChange(Point(3, 4), Point(3, 9), "ab").after() == Point(3, 6)
    assert TextChange(Point(3, 4), Point(5, 0), "a\nbcd").after() == Point(4, 3)


@pytest.mark.parametrize(
    ("text", "start", "end", "new"),
    [
        ("a\rb", (1, 0), (1, 0), "\n"),
        ("a\n\nb", (0, 1), (1, 0), "\r"),
        ("a\r\nb", (0, 1), (1, 0), ""),
        ("a\rb\nc", (1, 0), (1, 1), ""),
        ("", (0, 0), (0, 0), "x\n"),
    ],
)
def test_ends_that_meet_become_one(text: str, start: tuple[int, int], end: tuple[int, int], new: str) -> None:
    check(text, [(Point(*start), Point(*end), new)])


def test_ten_thousand_random_edits_keep_text_and_lines_right() -> None:
    rng = random.Random(20)
    for _ in range(100):
        text = "".join(rng.choices(PIECES, k=12))
        buffer = Buffer(text)
        for _ in range(100):
            start, end = sorted([_random_point(rng, buffer), _random_point(rng, buffer)])
            new = "".join(rng.choices(PIECES, k=rng.randrange(4)))
            text = _apply(buffer, text, TextChange(start, end, new))
            assert buffer.text == text
            assert buffer.lines == split_keeping_ends(text)


def check(text: str, edits: list[tuple[Point, Point, str]]) -> None:
    """The edits leave the same text as on a plain string, cut into the same lines as that text afresh."""
    buffer = Buffer(text)
    for start, end, new in edits:
        text = _apply(buffer, text, TextChange(start, end, new))
    assert buffer.text == text
    assert buffer.lines == split_keeping_ends(text)


def _apply(buffer: Buffer, text: str, edit: TextChange) -> str:
    starts = [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", text))]
    start = starts[edit.start.line] + edit.start.column
    end = starts[edit.end.line] + edit.end.column
    buffer.replace(edit)
    return text[:start] + edit.text + text[end:]


def _random_point(rng: random.Random, buffer: Buffer) -> Point:
    line = rng.randrange(len(buffer.lines))
    return Point(line, rng.randint(0, len(buffer.content(line))))
