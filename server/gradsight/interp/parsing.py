"""From text to units: one per top-level statement, and the parts that parse when the whole does not."""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gradsight.interp.idle_edits import Grafted, graft
from gradsight.interp.visible_text import names_bound
from gradsight.model.report import SyntaxProblem
from gradsight.model.sites import Unit
from gradsight.model.source import Span

MOST_REPAIRS = 12
MOST_BROKEN_PIECES = 24
_OPENER = re.compile(r"^\s*(if|for|while|with|try|else|elif|except|finally|def|class|async|match|case)\b.*$")


# A blank line and then, in the first column, what only a definition begins with.  Inside a string of several lines it
# can mean something else; the pieces on both sides of such a place do not parse by themselves.
_BOUNDARY = re.compile(r"\n\n(?=def |class |async def |@)")
UNREADABLE = re.compile("[\0\ud800-\udfff]")
_LINE_IN_MESSAGE = re.compile(r"(?<=\bline )\d+")
_BLOCK = 4096

Window = tuple[int, int]
"""The first and the last line of what had to be repaired."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The units of a text in order, what did not parse, and the lines within which it was repaired."""

    units: list[Unit]
    problems: list[SyntaxProblem]
    window: Window | None = None
    grafts: list[Grafted] = field(default_factory=list)
    """Units that are the same as before, in another text."""
    is_left: bool = False
    """The text does not parse, and the units are those of the text before, where they were."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The lines from one boundary to the next; lines count from 1."""

    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + self.text.count("\n")


def parse_text(path: str, text: str) -> Parsed:
    """Parse a whole text; where that fails, everything around the broken lines.

    A text that does not parse is taken piece by piece.  From the first to the last piece that does not parse by itself
    reaches the *window*: only there lines are replaced.  So a break touches nothing but its neighbourhood, and what it does
    is the same whether the text was parsed before or not.
    """
    text = _with_line_feeds(text)
    tree, _ = _parse(text)
    if tree is not None:
        return Parsed(split_units(path, text, tree), [])
    odd = UNREADABLE.search(text)
    if odd is not None:
        return _parse_readable(path, text, odd.start())
    pieces = _pieces(text)
    trees = [_parse(piece.text)[0] for piece in pieces]
    first, last = _window_of(pieces, trees)
    head = [unit for piece, tree in zip(pieces[:first], trees) for unit in _units_of(path, piece, tree)]
    window = _joined(pieces[first : last + 1])
    inside = _parse_window(path, window)
    tail = [
        unit
        for piece, tree in zip(pieces[last + 1 :], trees[last + 1 :])
        for unit in _units_of(path, piece, tree)
    ]
    return Parsed([*head, *inside.units, *tail], inside.problems, inside.window)


def _parse_readable(path: str, text: str, place: int) -> Parsed:
    """What can be read of a text that has characters which no source can have, the first of them at a place."""
    parsed = parse_text(path, UNREADABLE.sub(" ", text))
    line, column = text.count("\n", 0, place) + 1, place - (text.rfind("\n", 0, place) + 1)
    what = "a null character" if text[place] == "\0" else "half of a character"
    problem = SyntaxProblem(f"the text has {what}", Span(line, column, line, column + 1))
    for unit in parsed.units:
        unit.repaired = True
    return Parsed(parsed.units, [problem, *parsed.problems], (1, text.count("\n") + 1))


def reparse(
    path: str,
    text: str,
    old_text: str,
    old_units: list[Unit],
    window: Window | None,
    is_left_broken: Callable[[], bool] = lambda: False,
    retired: Sequence[Unit] = (),
) -> Parsed:
    """Parse an edited text, keeping the units that the edit did not touch (as the same objects, moved).

    `window` is where the old text had to be repaired, if it had.  `is_left_broken`: asked where the text around the edit does
    not parse, whether the old units shall stay as they are.  `retired`: units of texts before that may come back.
    """
    text, old_text = _with_line_feeds(text), _with_line_feeds(old_text)
    same, alike = _same_ends(text, old_text)
    before, after = text.count("\n", 0, same), text.count("\n", len(text) - alike)
    total = before + text.count("\n", same) + 1
    old_total = before + old_text.count("\n", same) + 1
    edited = before + 1, total - after
    if window is not None:
        before, after = min(before, window[0] - 1), min(after, old_total - window[1])
    shift = total - old_total
    head, tail = _around(old_units, before, old_total - after)
    start = head[-1].end + 1 if head else 1
    stop = tail[0].start + shift - 1 if tail else total
    begin = _begin_of(text, start, edited[0], same)
    end = _end_of(text, stop, edited[1], len(text) - alike)
    middle = Piece(start, text[begin:end] if stop >= start else "")
    tree, problem = _parse(middle.text + ("\n" if tail else ""))
    gone = old_units[len(head) : len(old_units) - len(tail)]
    if problem is not None and window is None and not _ends_in_decorator(middle) and is_left_broken():
        return Parsed(old_units, [_moved(problem, start - 1)], is_left=True)
    if tree is None:
        return _reparse_broken(path, text, head, tail, shift, middle, gone)
    for unit in tail:
        unit.offset += shift
    units, grafts = _same_units(_units_of(path, middle, tree), gone, [*head, *tail], retired)
    return Parsed([*head, *units, *tail], [], grafts=grafts)


def problem_of(text: str, first: int) -> SyntaxProblem | None:
    """Why some lines do not parse, the first of which has a number; None also where what follows decides about it."""
    problem = _parse(text)[1]
    return (
        _moved(problem, first - 1)
        if problem is not None and not _ends_in_decorator(Piece(first, text))
        else None
    )


def _reparse_broken(
    path: str, text: str, head: list[Unit], tail: list[Unit], shift: int, middle: Piece, gone: list[Unit]
) -> Parsed:
    """The same pieces and window as `parse_text` finds: a piece of nothing but whole units need not be parsed to know."""
    pieces = _pieces(text)
    begun = {unit.start for unit in head} | {unit.start + shift for unit in tail}
    sound = all(piece.start in begun or middle.start <= piece.start <= middle.end + 1 for piece in pieces[1:])
    if not sound or UNREADABLE.search(text):
        parsed = parse_text(path, text)
        units, _ = _same_texts(parsed.units, [*head, *gone, *tail])
        return Parsed(units, parsed.problems, parsed.window)
    near = _near(pieces, middle)
    trees = [_parse(piece.text)[0] for piece in near]
    first, last = _window_of(near, trees)
    window = _joined(near[first : last + 1])
    inside = _parse_window(path, window)
    units = []
    for piece, tree in zip(near[:first], trees):
        units += _units_of(path, piece, tree)
    units += inside.units
    for piece, tree in zip(near[last + 1 :], trees[last + 1 :]):
        units += _units_of(path, piece, tree)
    edge, end = near[0].start, near[-1].end
    kept = [unit for unit in head if unit.end < edge]
    moved = [unit for unit in tail if unit.start + shift > end]
    loose = [*head[len(kept) :], *gone, *tail[: len(tail) - len(moved)]]
    for unit in moved:
        unit.offset += shift
    units, grafts = _same_units(units, loose, [*kept, *moved])
    return Parsed([*kept, *units, *moved], inside.problems, inside.window, grafts)


def _parse_window(path: str, window: Piece) -> Parsed:
    """The pieces between the first and the last that do not parse by themselves: together they may, else they are repaired."""
    tree, problem = _parse(window.text)
    lines = (window.start, window.end)
    if tree is not None or problem is None:
        return Parsed(_units_of(path, window, tree), [])
    told = _moved(problem, window.start - 1)
    return Parsed(_repaired(path, window, problem) or _piecewise(path, window), [told], lines)


def _repaired(path: str, piece: Piece, problem: SyntaxProblem) -> list[Unit]:
    tree, touched = _repair(piece.text, problem)
    units = _units_of(path, piece, tree)
    for unit in units:
        unit.repaired = any(unit.start <= line + piece.start - 1 <= unit.end for line in touched)
    return units


def _piecewise(path: str, window: Piece) -> list[Unit]:
    """What is broken in more places than are repaired: each of its pieces for itself, the first ones of those with breaks."""
    units, breaks = [], 0
    for piece in _pieces(window.text):
        moved = Piece(window.start + piece.start - 1, piece.text)
        tree, problem = _parse(piece.text)
        if tree is not None:
            units += _units_of(path, moved, tree)
        elif problem is not None and breaks < MOST_BROKEN_PIECES:
            breaks += 1
            units += _repaired(path, moved, problem)
    return units


def _moved(problem: SyntaxProblem, lines: int) -> SyntaxProblem:
    if not lines:
        return problem
    message = _LINE_IN_MESSAGE.sub(lambda found: str(int(found.group()) + lines), problem.message)
    return SyntaxProblem(message, problem.span.moved(lines))


def _is_hopeless(text: str, problem: SyntaxProblem) -> bool:
    return problem.message.startswith("the text is nested")


def _pieces(text: str) -> list[Piece]:
    """A text cut at its boundaries."""
    pieces = []
    line, place = 1, 0
    for found in _BOUNDARY.finditer(text):
        piece = Piece(line, text[place : found.end() - 1])
        pieces.append(piece)
        line, place = piece.end + 1, found.end()
    pieces.append(Piece(line, text[place:]))
    return pieces


def _near(pieces: list[Piece], middle: Piece) -> list[Piece]:
    """The pieces that have a line of the middle, and those that their decorators belong to."""
    chosen = [
        index for index, piece in enumerate(pieces) if piece.start <= middle.end and piece.end >= middle.start
    ]
    last = chosen[-1]
    while last + 1 < len(pieces) and _ends_in_decorator(pieces[last]):
        last += 1
    return pieces[chosen[0] : last + 1]


def _window_of(pieces: list[Piece], trees: list[ast.Module | None]) -> tuple[int, int]:
    """The first and the last piece of those that do not parse by themselves, and what their decorators belong to."""
    broken = [index for index, tree in enumerate(trees) if tree is None]
    if not broken:
        return 0, len(pieces) - 1
    last = broken[-1]
    while last + 1 < len(pieces) and _ends_in_decorator(pieces[last]):
        last += 1
    return broken[0], last


def _ends_in_decorator(piece: Piece) -> bool:
    lines = [line for line in piece.text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    return bool(lines) and lines[-1].startswith("@")


def _joined(pieces: list[Piece]) -> Piece:
    return Piece(pieces[0].start, "\n".join(piece.text for piece in pieces))


def _units_of(path: str, piece: Piece, tree: ast.Module | None) -> list[Unit]:
    units = split_units(path, piece.text, tree) if tree is not None else []
    for unit in units:
        unit.offset = piece.start - 1
    return units


def _same_ends(text: str, old_text: str) -> tuple[int, int]:
    """How many characters two texts have in common at their beginning, and then at their end."""
    shorter = min(len(text), len(old_text))
    same = 0
    while same < shorter and text[same : same + _BLOCK] == old_text[same : same + _BLOCK]:
        same += _BLOCK
    same = min(same, shorter)
    same += _last_equal(
        lambda size: text[same : same + size] == old_text[same : same + size], min(_BLOCK, shorter - same)
    )
    rest = shorter - same
    end, old_end = len(text), len(old_text)
    alike = 0
    while alike < rest:
        size = min(_BLOCK, rest - alike)
        begin, old_begin = end - alike - size, old_end - alike - size
        if text[begin : begin + size] != old_text[old_begin : old_begin + size]:
            break
        alike += size
    alike += _last_equal(
        lambda size: (
            text[end - alike - size : end - alike] == old_text[old_end - alike - size : old_end - alike]
        ),
        min(_BLOCK, rest - alike),
    )
    return same, alike


def _last_equal(holds: Callable[[int], bool], most: int) -> int:
    """The largest size up to `most` for which a property holds that a smaller size then has too."""
    low, high = 0, most
    while low < high:
        size = (low + high + 1) // 2
        if holds(size):
            low = size
        else:
            high = size - 1
    return low


def _around(units: list[Unit], before: int, behind: int) -> tuple[list[Unit], list[Unit]]:
    """The units that end by one line, and those that start after another; none that shares a line with what lies between."""
    first = bisect_right(units, before, key=lambda unit: unit.end)
    while 0 < first < len(units) and units[first].start <= units[first - 1].end:
        first -= 1
    last = max(first, bisect_right(units, behind, key=lambda unit: unit.start))
    while first < last < len(units) and units[last].start <= units[last - 1].end:
        last += 1
    return units[:first], units[last:]


def _begin_of(text: str, line: int, known: int, place: int) -> int:
    """Where a line begins, counted back from a place on a known line that is not before it."""
    for _ in range(known - line):
        place = text.rfind("\n", 0, place)
    return text.rfind("\n", 0, place) + 1


def _end_of(text: str, line: int, known: int, place: int) -> int:
    """Where a line ends, counted on from a place on a known line that is not behind it."""
    for _ in range(line - known):
        place = text.find("\n", place) + 1
    end = text.find("\n", place)
    return end if end >= 0 else len(text)


def _same_units(
    fresh: list[Unit], old_units: list[Unit], others: list[Unit], retired: Sequence[Unit] = ()
) -> tuple[list[Unit], list[Grafted]]:
    """Fresh units, those of them replaced by old ones that have the same text, or do the same; `others` were not edited."""
    units, left = _same_texts(fresh, [*old_units, *retired])
    left = [unit for unit in left if unit not in retired]
    new = [unit for unit in fresh if unit in units]
    if len(new) != 1 or len(left) != 1:
        return units, []
    around = [*others, *(unit for unit in units if unit is not new[0]), left[0]]
    for known in [left[0], *(unit for unit in retired if unit not in units)]:
        grafted = graft(known, new[0], lambda: frozenset().union(*map(names_bound, around)))
        if grafted is not None:
            return [known if unit is new[0] else unit for unit in units], [grafted]
    return units, []


def _same_texts(fresh: list[Unit], old_units: list[Unit]) -> tuple[list[Unit], list[Unit]]:
    """Fresh units, those of them replaced by old ones with the same text, and the old ones that are left."""
    available: dict[str, list[Unit]] = {}
    for unit in reversed(old_units):
        if not unit.repaired:
            available.setdefault(unit.text, []).append(unit)
    result = []
    for unit in fresh:
        known = available.get(unit.text) if not unit.repaired else None
        if known:
            old = known.pop()
            old.offset = unit.start - old.first
            result.append(old)
        else:
            result.append(unit)
    return result, [unit for unit in old_units if unit not in result]


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def split_units(path: str, text: str, tree: ast.Module) -> list[Unit]:
    """One unit per top-level statement; those that share a line are one, since the text of a unit is whole lines."""
    lines = text.split("\n")
    groups: list[tuple[int, int, list[ast.stmt]]] = []
    for statement in tree.body:
        first = statement.lineno
        for decorator in getattr(statement, "decorator_list", []):
            first = min(first, decorator.lineno)
        last = statement.end_lineno or first
        if groups and first <= groups[-1][1]:
            first, _, together = groups[-1]
            together.append(statement)
            groups[-1] = (first, last, together)
        else:
            groups.append((first, last, [statement]))
    return [Unit(path, "\n".join(lines[first - 1 : last]), group, first) for first, last, group in groups]


def _parse(text: str) -> tuple[ast.Module | None, SyntaxProblem | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text), None
        except SyntaxError as error:
            line = min(max(1, error.lineno or 1), text.count("\n") + 1)
            column = max(0, (error.offset or 1) - 1)
            end_line = max(line, min(error.end_lineno or line, text.count("\n") + 1))
            end_column = max(column, (error.end_offset or 1) - 1) if end_line == line else 0
            return None, SyntaxProblem(
                error.msg or "invalid syntax", Span(line, column, end_line, max(end_column, 0))
            )
        except (ValueError, RecursionError, MemoryError) as error:
            reason = (
                "the text is nested too deeply"
                if isinstance(error, (RecursionError, MemoryError))
                else str(error)
            )
            return None, SyntaxProblem(reason, Span(1, 0, 1, 0))


def _repair(text: str, problem: SyntaxProblem) -> tuple[ast.Module | None, set[int]]:
    """Replace broken lines by `pass` until the rest parses; also tells which lines."""
    if _is_hopeless(text, problem):
        return None, set()
    lines = text.split("\n")
    touched: set[int] = set()
    for _ in range(MOST_REPAIRS):
        line = min(problem.span.line, len(lines))
        while line in touched and line > 1:
            line -= 1
        if line in touched:
            return None, touched
        repeated = lines[line - 1]
        touched.add(line)
        _blank(lines, line - 1, problem.message)
        # What is said again and again is wrong again and again.
        while repeated.strip() and line < len(lines) and lines[line] == repeated:
            line += 1
            touched.add(line)
            lines[line - 1] = ""
        tree, following = _parse("\n".join(lines))
        if tree is not None:
            return tree, touched
        if following is None:
            return None, touched
        problem = following
    return None, touched


def _blank(lines: list[str], index: int, message: str) -> None:
    """Make one line harmless; a line that opens a block keeps its block under `if True:`."""
    content = lines[index]
    indent = content[: len(content) - len(content.lstrip())]
    following = next((line for line in lines[index + 1 :] if line.strip()), "")
    deeper = len(following) - len(following.lstrip()) > len(indent)
    if "expected an indented block" in message:
        lines[index] = indent + "pass" if not content.strip() else content
        previous = index - 1
        while previous >= 0 and not lines[previous].strip():
            previous -= 1
        if previous >= 0 and _OPENER.match(lines[previous]):
            opener = lines[previous]
            lines[previous] = opener[: len(opener) - len(opener.lstrip())] + "pass"
        return
    if "unindent" in message or "unexpected indent" in message:
        lines[index] = ""
        return
    lines[index] = indent + ("if True:" if deeper and content.strip() else "pass")
