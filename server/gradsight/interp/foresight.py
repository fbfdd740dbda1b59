"""Which later round of a loop is worth executing: the next one in which a condition turns.

A *trail* is a number as it was in each executed round; if it moved in a straight line it is continued.  A *watch* is a
comparison of two numbers inside the loop with their trails.  It *turns* in the first round in which it has an outcome that
it never had.  A remainder (`step % 10`) does not move in a straight line, but what is divided does.
"""

from __future__ import annotations

import ast
import operator
from math import ceil, floor
from typing import Any

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
        slopes = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in zip(points, points[1:])]
        return slopes[-1] if all(one == slopes[-1] for one in slopes) else None

    def at(self, number: int) -> float | None:
        """Its value in a later round."""
        slope = self.slope()
        if slope is None:
            return None
        value = self.points[-1][1] + slope * (number - self.points[-1][0])
        return round(value) if isinstance(self.points[-1][1], int) else value


class Watch:
    """A comparison inside a loop."""

    __slots__ = ("comparison", "left", "left_syntax", "options", "outcomes", "right", "right_syntax")

    def __init__(self, comparison: type, left_syntax: ast.AST, right_syntax: ast.AST) -> None:
        self.comparison = comparison
        self.left, self.right = Trail(), Trail()
        self.left_syntax, self.right_syntax = left_syntax, right_syntax
        self.options: tuple[Any, ...] | None = None
        self.outcomes: set[bool] = set()


class Foresight:
    """What one execution of a loop compared, and when that turns."""

    __slots__ = ("remainders", "watches")

    def __init__(self) -> None:
        self.watches: dict[ast.AST, Watch] = {}
        self.remainders: dict[ast.AST, tuple[Trail, Trail]] = {}

    def compared(
        self, number: int, comparison: type, left_syntax: ast.AST, right_syntax: ast.AST, left: Any, right: Any
    ) -> None:
        """A comparison of numbers, or of a number with some constants, in this round."""
        watch = self.watches.get(right_syntax)
        if watch is None:
            if len(self.watches) >= MOST_WATCHES:
                return
            watch = self.watches[right_syntax] = Watch(comparison, left_syntax, right_syntax)
        watch.left.add(number, left, first=True)
        if isinstance(right, tuple):
            watch.options = right
        else:
            watch.right.add(number, right, first=True)
        watch.outcomes.add(OUTCOMES[comparison](left, right))

    def divided(self, number: int, node: ast.AST, dividend: int, divisor: int) -> None:
        """A remainder was computed in this round."""
        trails = self.remainders.setdefault(node, (Trail(), Trail()))
        trails[0].add(number, dividend, first=True)
        trails[1].add(number, divisor, first=True)

    def outcome(self, watch: Watch, number: int) -> bool | None:
        """What a comparison says in a later round."""
        left = self._side(watch.left_syntax, watch.left, number)
        right = watch.options if watch.options is not None else self._side(watch.right_syntax, watch.right, number)
        return None if left is None or right is None else bool(OUTCOMES[watch.comparison](left, right))

    def _side(self, syntax: ast.AST, trail: Trail, number: int) -> float | None:
        remainder = self.remainders.get(syntax)
        if remainder is None:
            return trail.at(number)
        dividend, divisor = remainder[0].at(number), remainder[1].at(number)
        return dividend % divisor if dividend is not None and divisor else None

    def look(self, number: int) -> tuple[bool | None, ...]:
        """The outcomes of all comparisons and remainders in one round."""
        return tuple(self.outcome(watch, number) for watch in self.watches.values()) + tuple(
            bool(self._side(node, trails[0], number)) for node, trails in self.remainders.items()
        )

    def next_turn(self, last: int, end: int | None, ignored: set[ast.AST]) -> int | None:
        """The next round, before `end`, in which something has an outcome that it never had."""
        end = min(last + FARTHEST, end if end is not None else last + FARTHEST)
        turns = [
            turn
            for node, watch in self.watches.items()
            if len(watch.outcomes) == 1 and node not in ignored
            for turn in (self.turn_of(watch, last, end),)
            if turn is not None
        ]
        beside = {side for watch in self.watches.values() for side in (watch.left_syntax, watch.right_syntax)}
        for node, trails in self.remainders.items():
            if node not in beside and node not in ignored:
                turn = self._first_other_remainder(node, trails, last, end)
                turns += [turn] if turn is not None else []
        return min(turns, default=None)

    def turn_of(self, watch: Watch, last: int, end: int) -> int | None:
        """The next round in which a comparison has the outcome that it never had."""
        (seen,) = watch.outcomes
        for number in self._candidates(watch, last, end):
            if last < number < end and self.outcome(watch, number) is (not seen):
                return number
        return None

    def _candidates(self, watch: Watch, last: int, end: int) -> list[int] | range:
        sides = (watch.left_syntax, watch.right_syntax)
        divisors = [self.remainders[side][1].at(last) for side in sides if side in self.remainders]
        if divisors:
            farthest = max((int(divisor) for divisor in divisors if divisor), default=0)
            return range(last + 1, min(end, last + 2 + min(abs(farthest), MOST_REMAINDERS)))
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

    def _first_other_remainder(
        self, node: ast.AST, trails: tuple[Trail, Trail], last: int, end: int
    ) -> int | None:
        seen = {bool(value % divisor) for (_, value), (_, divisor) in zip(trails[0].points, trails[1].points)}
        if len(seen) != 1:
            return None
        divisor = trails[1].at(last)
        ahead = min(abs(int(divisor)), MOST_REMAINDERS) if divisor else 0
        for number in range(last + 1, min(end, last + 2 + ahead)):
            value = self._side(node, trails[0], number)
            if value is not None and bool(value) not in seen:
                return number
        return None
