"""Which later round of a loop is worth executing: the next one in which a condition turns.

A *trail* is a number as it was in each executed round; if it moved in a straight line it is continued.  A *watch* is a
comparison of two numbers inside the loop with their trails.  It *turns* in the next round in which it has an outcome that it
had less than twice: what is wrong with `if step % 10 == 9: loss.backward()` may show only when it is done again.  A
remainder (`step % 10`) does not move in a straight line, but what is divided does.
"""

from __future__ import annotations

import ast
import operator
from itertools import pairwise
from math import ceil, floor, isclose
from typing import Any

from gradsight.interp.syntax_parts import syntax_parts

FARTHEST = 4096
"""How many rounds ahead a turn is looked for."""
MOST_REMAINDERS = 512
MOST_WATCHES = 24
OUTCOMES: dict[type, Any] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, options: item in options,
    ast.NotIn: lambda item, options: item not in options,
}


class Trail:
    """A number from round to round."""

    __slots__ = ("points",)

    def __init__(self) -> None:
        self.points: list[tuple[int, float]] = []

    def add(self, number: int, value: float, *, first: bool) -> None:
        """The value in this round; of several, the first or the last counts."""
        points = self.points
        if points and points[-1][0] == number:
            if not first:
                points[-1] = (number, value)
            return
        points.append((number, value))
        del points[:-3]

    def slope(self) -> float | None:
        """How much it moves per round, if it moves in a straight line."""
        points = self.points
        if len(points) < 2:
            return None
        slopes = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in pairwise(points)]
        return slopes[-1] if all(isclose(one, slopes[-1]) for one in slopes) else None

    def at(self, number: int) -> float | None:
        """Its value in a later round."""
        slope = self.slope()
        if slope is None:
            return None
        value = self.points[-1][1] + slope * (number - self.points[-1][0])
        return round(value) if isinstance(self.points[-1][1], int) else value


class LoopComparison:
    """A comparison inside a loop."""

    __slots__ = (
        "awaited",
        "comparison",
        "left",
        "left_syntax",
        "options",
        "outcomes",
        "right",
        "right_syntax",
    )

    def __init__(self, comparison: type, left_syntax: ast.AST, right_syntax: ast.AST) -> None:
        self.comparison = comparison
        self.left, self.right = Trail(), Trail()
        self.left_syntax, self.right_syntax = left_syntax, right_syntax
        self.options: tuple[Any, ...] | None = None
        self.awaited: list[int] = []
        """The rounds in which it was to turn."""
        self.outcomes: dict[bool, set[int]] = {}
        """The rounds that had each outcome; two of them are enough."""

    def note(self, number: int, outcome: bool) -> bool:
        """The outcome in this round; says whether there was none like it before."""
        self.awaited.clear()
        rounds = self.outcomes.get(outcome)
        if rounds is None:
            self.outcomes[outcome] = {number}
            return True
        if len(rounds) < 2:
            rounds.add(number)
        return False

    def is_given_up(self) -> bool:
        """Whether nobody asked in the rounds in which it was to turn."""
        return len(self.awaited) > 2


class LoopExtrapolation:
    """What one execution of a loop compared, and when that turns."""

    __slots__ = ("is_changed", "remainders", "watches")

    def __init__(self) -> None:
        self.is_changed = False
        """Whether the last rounds brought an outcome that there never was."""
        self.watches: dict[ast.AST, LoopComparison] = {}
        """By the syntax of their right sides."""
        self.remainders: dict[ast.AST, LoopComparison] = {}
        """What is divided and by what; the outcome is whether something remains."""

    def compared(
        self,
        number: int,
        comparison: type,
        left_syntax: ast.AST,
        right_syntax: ast.AST,
        left: float,
        right: float | tuple[object, ...],
    ) -> None:
        """A comparison of numbers, or of a number with some constants, in this round."""
        watch = self.watches.get(right_syntax)
        if watch is None:
            if len(self.watches) >= MOST_WATCHES:
                return
            watch = self.watches[right_syntax] = LoopComparison(comparison, left_syntax, right_syntax)
        watch.left.add(number, left, first=True)
        if isinstance(right, tuple):
            watch.options = right
        else:
            watch.right.add(number, right, first=True)
        if watch.note(number, bool(OUTCOMES[comparison](left, right))):
            self.is_changed = True

    def divided(self, number: int, node: ast.BinOp, dividend: int, divisor: int) -> None:
        """A remainder was computed in this round."""
        watch = self.remainders.get(node)
        if watch is None:
            watch = self.remainders[node] = LoopComparison(ast.Mod, node.left, node.right)
        watch.left.add(number, dividend, first=True)
        watch.right.add(number, divisor, first=True)
        if watch.note(number, bool(dividend % divisor)):
            self.is_changed = True

    def outcome(self, watch: LoopComparison, number: int) -> bool | None:
        """What a comparison says in a later round."""
        if watch.comparison is ast.Mod:
            rest = remainder(watch, number)
            return None if rest is None else bool(rest)
        left = self._side(watch.left_syntax, watch.left, number)
        right = (
            watch.options
            if watch.options is not None
            else self._side(watch.right_syntax, watch.right, number)
        )
        return None if left is None or right is None else bool(OUTCOMES[watch.comparison](left, right))

    def _side(self, syntax: ast.AST, trail: Trail, number: int) -> float | None:
        divided = self.remainders.get(syntax)
        return trail.at(number) if divided is None else remainder(divided, number)

    def expect_again(self) -> None:
        """Something new has happened: what was seen twice before it is worth seeing once more after it."""
        for watch in (*self.watches.values(), *self.remainders.values()):
            for rounds in watch.outcomes.values():
                if len(rounds) > 1:
                    rounds.discard(max(rounds))

    def is_foreseen(self, test: ast.AST, number: int) -> bool:
        """Whether the outcome of a condition in a later round is known: it compares numbers and asks nothing else."""
        watches: list[LoopComparison | None] = []
        for part in syntax_parts(test):
            if isinstance(part, ast.Compare):
                watches.append(self.watches.get(part.comparators[0]))
            elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
                watches.append(self.remainders.get(part))
            elif isinstance(part, ast.Call) and getattr(part.func, "id", "") != "len":
                watches.append(None)
        return bool(watches) and all(
            watch is not None and self.outcome(watch, number) is not None for watch in watches
        )

    def look(self, number: int) -> tuple[bool | None, ...]:
        """The outcomes of all comparisons and remainders in one round."""
        watches = (*self.watches.values(), *self.remainders.values())
        return tuple(self.outcome(watch, number) for watch in watches)

    def next_turn(self, last: int, end: int | None) -> tuple[int, bool] | None:
        """The next round, before `end`, in which something has a rare outcome, and whether it never had it."""
        end = min(last + FARTHEST, end if end is not None else last + FARTHEST)
        beside = {side for watch in self.watches.values() for side in (watch.left_syntax, watch.right_syntax)}
        watches = [
            *self.watches.values(),
            *(watch for node, watch in self.remainders.items() if node not in beside),
        ]
        turns: dict[int, list[LoopComparison]] = {}
        for watch in watches:
            rare = {outcome for outcome in (True, False) if len(watch.outcomes.get(outcome, ())) < 2}
            turn = self.turn_of(watch, last, end, rare) if rare and not watch.is_given_up() else None
            if turn is not None:
                turns.setdefault(turn, []).append(watch)
        if not turns:
            return None
        first = min(turns)
        for watch in turns[first]:
            watch.awaited.append(first)
        # Each of several numbers that are waited for may bring something of its own.
        is_new = any(
            watch.options is not None or self.outcome(watch, first) not in watch.outcomes
            for watch in turns[first]
        )
        return first, is_new

    def turn_of(self, watch: LoopComparison, last: int, end: int, wanted: set[bool]) -> int | None:
        """The next round in which a comparison has a wanted outcome."""
        if watch.awaited or (watch.left.points and watch.left.points[-1][0] < last):
            # It is not asked in every round: perhaps in every so many.
            beat = on_beat(watch.left, last)
            return beat if beat is not None and beat < end and self.outcome(watch, beat) in wanted else None
        for number in self._candidates(watch, last, end):
            if last < number < end and self.outcome(watch, number) in wanted:
                return number
        return None

    def _candidates(self, watch: LoopComparison, last: int, end: int) -> list[int] | range:
        sides = (watch.left_syntax, watch.right_syntax)
        divided = [self.remainders[side] for side in sides if side in self.remainders]
        if watch.comparison is ast.Mod:
            divided.append(watch)
        if divided:
            divisors = [one.right.at(last) for one in divided]
            farthest = max((abs(int(divisor)) for divisor in divisors if divisor), default=0)
            return range(last + 1, min(end, last + 2 + min(farthest, MOST_REMAINDERS)))
        slope, value = watch.left.slope(), watch.left.at(last)
        if slope is None or value is None:
            return []
        if watch.options is not None:
            numbers = [option for option in watch.options if isinstance(option, (int, float))]
            meets = [last + (option - value) / slope for option in numbers] if slope else []
            return sorted({last + 1, *(int(meet) for meet in meets if meet == int(meet))})
        other, beside = watch.right.slope(), watch.right.at(last)
        if other is None or beside is None or other == slope:
            return []
        meet = last + (beside - value) / (slope - other)
        return [last + 1, floor(meet), ceil(meet), floor(meet) + 1, ceil(meet) + 1]


def on_beat(trail: Trail, last: int) -> int | None:
    """The next round after `last` that keeps the distance between the rounds in which a number was asked for."""
    gaps = [after[0] - before[0] for before, after in pairwise(trail.points)]
    if not gaps:
        return None
    latest, gap = trail.points[-1][0], min(gaps)
    return latest + ((last - latest) // gap + 1) * gap


def remainder(watch: LoopComparison, number: int) -> float | None:
    """What remains of a division in a later round."""
    dividend, divisor = watch.left.at(number), watch.right.at(number)
    return dividend % divisor if dividend is not None and divisor else None
