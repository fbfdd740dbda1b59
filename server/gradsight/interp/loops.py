"""Loops: how many rounds are executed, and what is no longer known of a loop that goes on after them.

A long loop, or one whose length is not known, is executed for its first rounds only.  What it counts and what it
collects would then look smaller than it is: a branch that waits for a full memory would never be taken.  If such a
branch was passed by, two more rounds follow in which counters are unknown and collections are longer than listed.
"""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterator
from itertools import repeat
from typing import Any

from gradsight.interp.absence import Arm
from gradsight.interp.assignment import Assignment
from gradsight.interp.tensors import Tensor
from gradsight.interp.values import Instance, Layer, Number, Seq

BREAK = "break"
CONTINUE = "continue"
UNKNOWN_ROUNDS = 2
FULL_UNROLL = 12
LATER_ROUNDS = 2
MOST_ROUNDS = FULL_UNROLL + LATER_ROUNDS
ROUNDS_OF_A_LOOP = UNKNOWN_ROUNDS + LATER_ROUNDS
"""How many items a loop over a row of unknown length may ask for."""
MANY = 10**6
"""The length given for an iterator that ends where the real one ends, but was not counted."""

Flow = Generator[Any, Any, Any]


class LoopRun:
    """One execution of a loop statement, for what happens between its rounds."""

    __slots__ = ("chosen", "counted", "grown", "length", "node", "number", "site")

    def __init__(self, node: ast.AST, site: Any, length: int | None = None) -> None:
        self.node = node
        self.number = 0
        self.site = site
        self.length = length
        """How many rounds the program makes, where that is known."""
        self.grown: dict[int, tuple[Seq, set[int]]] = {}
        """Lists that were appended to, and the rounds that did it."""
        self.counted: dict[tuple[int, str], tuple[Any, set[int]]] = {}
        """Whole numbers that were counted up, by their holder and name, and the rounds that did it."""
        self.chosen: dict[ast.If | ast.IfExp, set[bool]] = {}
        """The ways that were taken at conditions whose outcome was known."""


class Loops(Assignment):
    """Loops, round by round."""

    def do_for(self, node: Any) -> Flow:
        iterable = self.evaluate(node.iter)
        items, length = self.iterate(iterable, ROUNDS_OF_A_LOOP)
        frame = self.frame
        outer = frame.loops
        run = LoopRun(node, self.site(node), length)
        limit = self.rounds_allowed(length)
        status: Any = None
        ended_by_break = False
        spent_before = self.budget
        end = limit
        """The round that is not executed any more."""
        try:
            for item in all_rounds(items, length):
                number = run.number
                if number >= limit:
                    if holds_objects(item):
                        self.truncated = True
                    if number == limit and limit >= UNKNOWN_ROUNDS:
                        end = limit + self.later_rounds(run)
                    if number >= end:
                        self.cut_off(run)
                        break
                    item = self.some_item(iterable, item)
                run.number += 1
                frame.loops = (*outer, (run, number))
                self.assign(node.target, item)
                status = yield from self.block(node.body)
                if status is CONTINUE:
                    status = None
                elif status is BREAK:
                    ended_by_break = True
                    status = None
                    break
                elif status is not None:
                    return status
                if number == 0 and length is not None and limit > UNKNOWN_ROUNDS:
                    cost = max(1, spent_before - self.budget)
                    end = limit = max(UNKNOWN_ROUNDS, min(limit, self.budget // (3 * cost)))
        finally:
            frame.loops = outer
            self.loop_ended(run)
        if not ended_by_break and type(iterable) is Seq and iterable.once and iterable.exact and run.number:
            iterable.spent = iterable.spent or self.site(node.iter)
        if not ended_by_break and node.orelse:
            return (yield from self.block(node.orelse))
        return None

    def later_rounds(self, run: LoopRun) -> int:
        """How many rounds follow in which the loop is past its beginning."""
        waits = bool(self.passed_by(run))
        if waits:
            self.forget_counts(run)
        return LATER_ROUNDS if waits else 0 if run.length is None else 1

    def passed_by(self, run: LoopRun) -> set[Arm]:
        """The branches that were never taken because of what the loop counts or collects."""
        names = {name for _, name in run.counted}
        if isinstance(run.node, (ast.For, ast.AsyncFor)):
            names |= {part.id for part in ast.walk(run.node.target) if isinstance(part, ast.Name)}
        return {
            (condition, True not in ways)
            for condition, ways in run.chosen.items()
            if len(ways) == 1
            and (False in ways or has_other_way(condition))
            and asks_for_count(condition.test, names)
        }

    def cut_off(self, run: LoopRun) -> None:
        """The loop is left, and goes on in the program."""
        self.waiting |= self.passed_by(run)
        self.forget_counts(run)
        self.cut_short += 1

    def forget_counts(self, run: LoopRun) -> None:
        """What was counted or collected in several rounds is larger than it looks."""
        for items, rounds in run.grown.values():
            items.partial = items.partial or len(rounds) > 1
        for (_, name), (holder, rounds) in run.counted.items():
            names = holder.attributes if isinstance(holder, Instance) else holder
            if len(rounds) > 1 and type(names.get(name)) in (int, float):
                names[name] = Number()

    def arm_chosen(self, node: ast.If | ast.IfExp, outcome: bool) -> None:
        """A condition with a known outcome, inside a loop."""
        self.arms.add((node, outcome))
        for run, _ in self.frame.loops:
            run.chosen.setdefault(node, set()).add(outcome)

    def note_count(self, holder: Any, name: str, before: Any, after: Any) -> None:
        """A number was counted up in a loop."""
        if (
            type(after) in (int, float)
            and type(before) in (int, float)
            and isinstance(holder, (dict, Instance))
        ):
            for run, number in self.frame.loops:
                run.counted.setdefault((id(holder), name), (holder, set()))[1].add(number)

    def note_recount(self, node: ast.Assign, value: int) -> None:
        """`self.size = min(self.size + 1, limit)`: a number that is made of what it was before."""
        target = node.targets[0]
        if isinstance(target, ast.Name):
            holder: Any = self.frame.namespace
            name = target.id
            own = any(isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(node.value))
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            holder, name = self.frame.namespace.get(target.value.id), target.attr
            own = any(
                isinstance(inner, ast.Attribute) and inner.attr == name for inner in ast.walk(node.value)
            )
        else:
            return
        if own:
            self.note_count(holder, name, 0, value)

    def note_growth(self, items: Seq) -> None:
        """A list was appended to."""
        for run, number in self.frame.loops:
            run.grown.setdefault(id(items), (items, set()))[1].add(number)

    cut_short: int = 0
    """How many loops were left before their end."""
    truncated: bool = False
    """A loop over distinct tensors or modules was left before all of them had their round."""

    def rounds_allowed(self, length: int | None) -> int:
        """How often the body is executed: all rounds of a short loop, the first ones of a long or unknown one."""
        if length is None:
            return UNKNOWN_ROUNDS
        return length if length <= FULL_UNROLL else UNKNOWN_ROUNDS + 1

    def some_item(self, iterable: Any, item: Any) -> Any:
        """What a later round of a long loop gets: like `item`, its value no longer known."""
        if isinstance(item, (int, float)) and not isinstance(item, bool):
            return Number()
        if isinstance(item, Seq) and item.kind == "tuple":
            return Seq("tuple", [self.some_item(iterable, inner) for inner in item.items])
        return item

    def do_while(self, node: ast.While) -> Flow:
        frame = self.frame
        outer = frame.loops
        run = LoopRun(node, self.site(node))
        ended_by_break = False
        end = MOST_ROUNDS
        try:
            while True:
                number = run.number
                known = self.truth(self.evaluate(node.test))
                if known is False:
                    break
                limit = (
                    FULL_UNROLL if known and not isinstance(node.test, ast.Constant) else UNKNOWN_ROUNDS + 1
                )
                if number >= limit and end == MOST_ROUNDS:
                    end = number + self.later_rounds(run)
                if number >= end:
                    self.cut_off(run)
                    break
                run.number += 1
                frame.loops = (*outer, (run, number))
                status = yield from self.block(node.body)
                if status is BREAK:
                    ended_by_break = True
                    break
                if status is not None and status is not CONTINUE:
                    return status
        finally:
            frame.loops = outer
            self.loop_ended(run)
        if not ended_by_break and node.orelse:
            return (yield from self.block(node.orelse))
        return None

    def loop_ended(self, run: LoopRun) -> None:
        """Hook: a loop is over."""


def all_rounds(items: Iterator[Any], length: int | None) -> Iterator[Any]:
    """The items of a loop; of a long row only the first may be there, and the last of them stands for the others."""
    count = 0
    item: Any = None
    for item in items:
        count += 1
        yield item
    if count and length is not None and length != MANY:
        yield from repeat(item, length - count)


def holds_objects(item: Any) -> bool:
    """Whether a loop variable stands for a parameter or module of its own."""
    if isinstance(item, Seq):
        return any(holds_objects(inner) for inner in item.items[:8])
    if isinstance(item, Tensor):
        return item.is_leaf and item.requires_grad is not False
    return isinstance(item, (Layer, Instance))


def asks_for_count(test: ast.expr, counted: set[str]) -> bool:
    """Whether a condition calls something (`len`, `memory.is_full()`) or names what is counted."""
    return any(
        isinstance(inner, ast.Call)
        or (isinstance(inner, ast.Name) and inner.id in counted)
        or (isinstance(inner, ast.Attribute) and inner.attr in counted)
        for inner in ast.walk(test)
    )


def has_other_way(condition: ast.If | ast.IfExp) -> bool:
    """Whether something else is done where a condition does not hold: an `else`, or what follows a guard clause."""
    return isinstance(condition, ast.IfExp) or bool(condition.orelse) or leaves_block(condition.body)


def leaves_block(body: list[ast.stmt]) -> bool:
    """Whether a block ends by leaving: a guard clause."""
    last = body[-1] if body else None
    return isinstance(last, (ast.Return, ast.Raise, ast.Continue, ast.Break))
