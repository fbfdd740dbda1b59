"""What one path has assumed of an unknown value, and what follows for the next question about it.

*Question*: a comparison of the value with constants, a membership among constants, or its truth.  A path that went the way
of `n > 3` goes the way of `n >= 2` too, and never that of `n == 1`: the answers to all questions about one value agree.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from gradsight.model.values import Value

LESS, MORE, EQUAL, WITHIN, IDENTICAL, TRUTH = "<", ">", "==", "in", "is", "truth"
LENGTH = "len"
"""How a length is remembered by what it is the length of."""
FILLS = frozenset(("append", "appendleft", "insert"))
RESIZES = FILLS | {
    "add",
    "extend",
    "update",
    "pop",
    "popleft",
    "popitem",
    "remove",
    "discard",
    "clear",
    "setdefault",
}
"""Methods after which an unknown container is longer, or has another length."""


Constants = Value | tuple[Value, ...]
"""One constant, or those that a value may be among."""


class PathConstraints:
    """The answers that a path has given about one value, as limits, remaining options and excluded constants."""

    __slots__ = (
        "excluded",
        "high",
        "high_open",
        "low",
        "low_open",
        "numeric",
        "options",
        "origin",
        "truth",
        "value",
        "whole",
    )

    def __init__(self, value: Value, numeric: bool, whole: bool) -> None:
        self.value = value
        self.numeric = numeric
        self.whole = whole
        """Whether it is a length: whole, and not below zero."""
        self.low: float | None = 0 if whole else None
        self.low_open = False
        self.high: float | None = None
        self.high_open = False
        self.options: list[Any] | None = None
        self.excluded: list[Any] = []
        self.truth: bool | None = None
        self.origin: Any = None
        """The decision that said the latest of it."""

    def answer(self, kind: str, constant: Constants) -> bool | None:
        """What the assumptions so far imply, or None."""
        if self.options is not None:
            outcomes = {evaluate(kind, option, constant) for option in self.options}
            return outcomes.pop() if len(outcomes) == 1 else None
        if kind == EQUAL:
            return self.equals(constant)
        if kind == IDENTICAL:
            return False if self.equals(constant) is False else None
        if kind == WITHIN:
            outcomes = {self.equals(option) for option in among(constant)}
            return True if True in outcomes else False if outcomes <= {False} else None
        if kind == TRUTH:
            return self.is_true()
        if not is_number(constant):
            return None
        if self.truth is False:
            # What is compared with a number and counts as false is zero.
            return evaluate(kind, 0, constant)
        return self.is_below(constant) if kind == LESS else self.is_above(constant)

    def equals(self, constant: Constants) -> bool | None:
        if constant in self.excluded:
            return False
        if self.truth is not None and bool(constant) is not self.truth:
            return False
        if not is_number(constant):
            return False if self.numeric or self.low is not None or self.high is not None else None
        if self.whole and constant != int(constant):
            return False
        if self.low is not None and (constant < self.low or (constant == self.low and self.low_open)):
            return False
        if self.high is not None and (constant > self.high or (constant == self.high and self.high_open)):
            return False
        return True if self.low == self.high == constant else None

    def is_below(self, constant: float) -> bool | None:
        if self.high is not None and (self.high < constant or (self.high == constant and self.high_open)):
            return True
        return False if self.low is not None and self.low >= constant else None

    def is_above(self, constant: float) -> bool | None:
        if self.low is not None and (self.low > constant or (self.low == constant and self.low_open)):
            return True
        return False if self.high is not None and self.high <= constant else None

    def is_true(self) -> bool | None:
        if self.truth is not None:
            return self.truth
        if self.is_above(0) or self.is_below(0) or (self.numeric and self.equals(0) is False):
            return True
        return False if self.equals(0) else None

    def assume(self, kind: str, constant: Constants, outcome: bool) -> None:
        """The path goes this way from here on."""
        if self.options is None and outcome and kind in (EQUAL, IDENTICAL, WITHIN):
            options = among(constant) if kind == WITHIN else [constant]
            self.options = [option for option in options if self.equals(option) is not False]
        elif self.options is not None:
            self.options = [
                option for option in self.options if evaluate(kind, option, constant) in (outcome, None)
            ]
        elif kind == TRUTH:
            self.truth = outcome
        elif kind == EQUAL or (kind == IDENTICAL and constant is None):
            self.exclude(constant)
        elif kind == WITHIN:
            for option in among(constant):
                self.exclude(option)
        elif kind in (LESS, MORE) and is_number(constant):
            if (kind == LESS) is outcome:
                self.lower_high(constant, is_open=outcome)
            else:
                self.raise_low(constant, is_open=outcome)

    def exclude(self, constant: Constants) -> None:
        self.excluded.append(constant)
        if self.low is not None:
            self.raise_low(self.low, self.low_open)
        if self.high is not None:
            self.lower_high(self.high, self.high_open)

    def raise_low(self, limit: float, is_open: bool) -> None:
        if self.whole:
            # The least whole number that is allowed: above 3 is from 4, above 3.5 too.
            limit, is_open = (limit // 1 + 1 if is_open else -(-limit // 1)), False
            while limit in self.excluded:
                limit += 1
        if self.low is None or limit > self.low or (limit == self.low and is_open):
            self.low, self.low_open = limit, is_open
        self.low_open = self.low_open or self.low in self.excluded

    def lower_high(self, limit: float, is_open: bool) -> None:
        if self.whole:
            limit, is_open = (-(-limit // 1) - 1 if is_open else limit // 1), False
            while limit in self.excluded:
                limit -= 1
        if self.high is None or limit < self.high or (limit == self.high and is_open):
            self.high, self.high_open = limit, is_open
        self.high_open = self.high_open or self.high in self.excluded


def among(constants: Constants) -> list[Value]:
    """The constants of a question about membership."""
    return list(constants) if isinstance(constants, tuple) else [constants]


def is_number(constant: Constants) -> TypeGuard[float]:
    """A constant that stands on the number line; infinities and `nan` do not."""
    return isinstance(constant, (int, float)) and abs(constant) < 1e300


def same(first: Value, second: Constants) -> bool:
    return bool(first == second)


def evaluate(kind: str, value: Value, constant: Constants) -> bool | None:
    """The answer for a value that is known."""
    if kind == EQUAL:
        return same(value, constant)
    if kind == IDENTICAL:
        return value is constant if same(value, constant) else False
    if kind == WITHIN:
        return any(same(value, option) for option in among(constant))
    if kind == TRUTH:
        return bool(value)
    if isinstance(value, (int, float)) and isinstance(constant, (int, float)):
        return bool(value < constant) if kind == LESS else bool(value > constant)
    return None
