"""What happens between the rounds of a loop that are executed: which one is next, and what the others would have changed."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from math import isfinite
from typing import Any, TypeGuard

from gradsight.interp.path_state import Arm
from gradsight.interp.python.loop_extrapolation import OUTCOMES, LoopExtrapolation, Trail
from gradsight.interp.python.loops_floor import LoopsFloor
from gradsight.interp.syntax import (
    ends_program,
    freezes_some,
    guarded_growth,
    names_returned,
    refuses_without,
)
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.sites import Frame, Site
from gradsight.model.tensors import Tensor
from gradsight.model.values import Instance, Mapping, Number, Seq, Value, is_constant

BREAK = "break"
CONTINUE = "continue"
UNKNOWN_ROUNDS = 2
FULL_UNROLL = 12
LATER_ROUNDS = 2
FORESEEN_ROUNDS = 8
"""How many rounds past the first ones are executed because a condition turns in them."""
MOST_REPEATED = 64
"""How many items may be added to a list for rounds that are not executed."""
ROUNDS_OF_A_LOOP = UNKNOWN_ROUNDS + LATER_ROUNDS
"""How many items a loop over a row of unknown length may ask for."""
MANY = 10**6
"""The length given for an iterator that ends where the real one ends, but was not counted."""


class LoopRun:
    """One execution of a loop statement, for what happens between its rounds."""

    __slots__ = (
        "allowed",
        "chosen",
        "counted",
        "foreseen",
        "foresight",
        "grown",
        "is_blurred",
        "is_prolonged",
        "length",
        "node",
        "number",
        "planned",
        "since",
        "site",
        "skips",
        "sorts",
    )

    def __init__(self, node: ast.AST, site: Site, length: int | None = None, *, since: int = 0) -> None:
        self.node = node
        self.since = since
        """How many actions the path had taken before."""
        self.number = 0
        """The round that comes next."""
        self.allowed = 1
        """How many rounds are executed before others are foreseen."""
        self.skips = False
        """Whether some round in between was not executed."""
        self.is_blurred = False
        """Whether this round stands for all later ones, so that what the loop counts is not known in it."""
        self.is_prolonged = False
        """Whether a round was added because the one before was the first that stepped."""
        self.sorts = False
        """Whether it goes through a model's parts one by one, which of them it takes being up to each."""
        self.site = site
        self.length = length
        """How many rounds the program makes, where that is known."""
        self.grown: dict[int, tuple[Seq, dict[int, int]]] = {}
        """Lists that were appended to, and how often in which round."""
        self.counted: dict[tuple[int, Any], tuple[Any, Trail, set[int]]] = {}
        """Numbers that were counted up, by their holder and name, and the rounds that did it."""
        self.chosen: dict[ast.If | ast.IfExp, set[bool]] = {}
        """The ways that were taken at conditions whose outcome was known."""
        self.foresight = LoopExtrapolation()
        self.planned: list[int] = []
        """Later rounds that are to be executed."""
        self.foreseen = 0
        """How many were planned."""


class LoopSampling(LoopsFloor):
    """The way from one executed round to the next."""

    cut_short: int = 0
    """How many loops were left before their end."""
    cut_length: int | None = None
    """How many rounds the last of them makes in the program, where that is known."""

    # -- which round is next -----------------------------------------------------------------------------------------

    def next_round(self, run: LoopRun) -> int | None:
        """The later round that is executed next, with its own numbers; None where no condition is seen to turn.

        It follows on a round like the last one, so that what alternates between rounds still does; and where something is
        new in it, a round follows that finds what it left.
        """
        if run.foresight.is_changed and run.foreseen:
            run.foresight.expect_again()
        run.foresight.is_changed = False
        if run.planned:
            return run.planned.pop(0)
        if run.foreseen >= FORESEEN_ROUNDS or not (run.foresight.watches or run.foresight.remainders):
            return None
        last, end = run.number - 1, self.end_of(run)
        found = run.foresight.next_turn(last, end)
        if found is None:
            return None
        turn, is_new = found
        look = run.foresight.look
        now = look(last)
        back = next((back for back in range(3) if turn - back - 1 <= last or look(turn - back - 1) == now), 2)
        stop = turn + 1 + is_new
        run.planned = list(range(max(run.number, turn - back), stop if end is None else min(stop, end)))
        run.foreseen += len(run.planned)
        return run.planned.pop(0)

    def end_of(self, run: LoopRun) -> int | None:
        """The number of rounds, from the length of what is gone through or the turn of the condition of a `while`."""
        if not isinstance(run.node, ast.While):
            return None if run.length == MANY else run.length
        for comparison in (part for part in syntax_parts(run.node.test) if isinstance(part, ast.Compare)):
            watch = run.foresight.watches.get(comparison.comparators[-1])
            if watch is not None and not watch.outcomes.get(False):
                return run.foresight.turn_of(watch, run.number - 1, run.number + MANY, {False})
        return None

    def later_rounds(self, run: LoopRun) -> int:
        """How many rounds follow in which what the loop counts is not known."""
        if run.foreseen:
            # Numbers that are not known would bring conditions together that hold in different rounds.
            return 0
        waits = bool(self.passed_by(run))
        if waits:
            self.forget_counts(run)
        return LATER_ROUNDS if waits else 0 if run.length is None else 1

    def passed_by(self, run: LoopRun) -> set[Arm]:
        """The branches that were never taken because of what the loop counts or collects."""
        names = {name for _, name in run.counted if isinstance(name, str)}
        if isinstance(run.node, (ast.For, ast.AsyncFor)):
            names |= {part.id for part in syntax_parts(run.node.target) if isinstance(part, ast.Name)}
        ends = self.end_of(run) is not None and run.foreseen < FORESEEN_ROUNDS
        return {
            (condition, True not in ways)
            for condition, ways in run.chosen.items()
            if len(ways) == 1
            and (False in ways or has_other_way(condition))
            and asks_for_count(condition.test, names)
            # The next turn of what is foreseen lies behind the end of the loop.
            and not (ends and run.foresight.is_foreseen(condition.test, run.number))
        }

    def note_unfilled(self, run: LoopRun) -> None:
        """A list that is still empty, because nothing led to where the loop adds to it, waits for that arm.

        What a function returns counts on every path that decided anything; other lists where a condition on the way
        was not known.
        """
        function = self.path.frame.function if self.path.decisions else None
        for name, conditions, arm in guarded_growth(run.node):
            held = self.path.frame.namespace.get(name)
            if type(held) is not Seq or held.items:
                continue
            if self.is_any_undecided(conditions) or (
                function is not None and name in names_returned(function.node)
            ):
                self.path.waiting.add((conditions[-1], arm))

    def is_any_undecided(self, conditions: tuple[ast.If, ...]) -> bool:
        return any(node in conditions for decision in self.path.decisions for node, _ in decision.turns)

    def settled(self, condition: ast.If) -> bool | None:
        """What a condition on a number that is not known any more says, where it said one thing and turns in no later round."""
        for run, _ in self.path.frame.loops:
            ways = run.chosen.get(condition, ())
            if not run.is_blurred or len(ways) != 1 or run.foreseen >= FORESEEN_ROUNDS:
                continue
            if self.end_of(run) is not None and run.foresight.is_foreseen(condition.test, run.number):
                return True in ways
        return None

    def cut_off(self, run: LoopRun) -> None:
        """The loop is left, and goes on in the program."""
        self.path.is_abridged = True
        self.path.waiting |= self.passed_by(run)
        end = self.end_of(run)
        if end is not None and end > run.number:
            self.skip(run, end - run.number)
        self.forget_counts(run, ended=end is not None)
        self.cut_short += 1
        self.cut_length = end

    # -- what the rounds in between would have changed ---------------------------------------------------------------

    def skip(self, run: LoopRun, rounds: int) -> None:
        """Some rounds are not executed: numbers move on in a straight line, lists grow, the rest stays as it is."""
        self.path.is_abridged = True
        last = run.number - 1
        run.skips = True
        for (_, name), (holder, trail, counting) in run.counted.items():
            names = names_of(holder)
            value: Any = names.get(name)
            slope = trail.slope()
            if type(value) not in (int, float):
                continue
            if slope is not None and trail.points[-1] == (last, value):
                moved = value + slope * rounds
                names[name] = round(moved) if type(value) is int else moved
            elif len(counting) > 1:
                names[name] = Number()
        for items, growth in run.grown.values():
            self.lengthen(items, growth, last, rounds)
        run.number += rounds

    def lengthen(self, items: Seq, growth: dict[int, int], last: int, rounds: int) -> None:
        """A list grows as it did; items that belong to no graph are as good as those that would have come."""
        each = growth.get(last, 0)
        if len(growth) < 2:
            return
        newest = items.items[-each:] if each else []
        steady = each == list(growth.values())[-2]
        if steady and not items.partial and is_repeatable(newest, each, rounds):
            items.items.extend(newest * rounds)
            if items.maxlen is not None:
                del items.items[: -items.maxlen]
        else:
            items.partial = True
            items.unlisted = items.unlisted + each * rounds if steady and items.unlisted is not None else None

    def forget_counts(self, run: LoopRun, ended: bool = False) -> None:
        """What was counted or collected in several rounds is larger than it looks."""
        for items, growth in run.grown.values():
            if len(growth) > 1:
                items.partial, items.unlisted = True, None
        for (_, name), (holder, trail, counting) in run.counted.items():
            names = names_of(holder)
            if len(counting) > 1 and type(names.get(name)) in (int, float):
                if not ended or trail.slope() is None:
                    names[name] = Number()

    def arm_chosen(self, node: ast.If | ast.IfExp, outcome: bool) -> None:
        """A condition with a known outcome, inside a loop."""
        self.path.arms.add((node, outcome))
        for run, _ in self.path.frame.loops:
            run.chosen.setdefault(node, set()).add(outcome)

    def note_count(
        self, holder: Value | dict[str, Value], name: Hashable, before: Value, after: Value
    ) -> None:
        """A number was counted up in a loop."""
        if (
            isinstance(after, (int, float))
            and isinstance(before, (int, float))
            and not isinstance(after, bool)
            and not isinstance(before, bool)
            and isinstance(holder, (dict, Instance, Mapping))
        ):
            for run, number in self.path.frame.loops:
                known = run.counted.get((id(holder), name))
                if known is None:
                    known = run.counted[id(holder), name] = (holder, Trail(), set())
                known[1].add(number, after, first=False)
                known[2].add(number)

    def note_comparison(
        self, node: type, left_syntax: ast.AST, right_syntax: ast.AST, left: Value, right: Value
    ) -> None:
        """Two values were compared in a loop."""
        if not is_number(left):
            return
        if node in (ast.In, ast.NotIn):
            if (
                not isinstance(right, (Seq, Mapping))
                or not right.exact
                or not all(map(is_constant, right.items))
            ):
                return
            held: float | tuple[object, ...] = tuple(right.items)
        elif is_number(right) and node in OUTCOMES:
            held = right
        else:
            return
        for run, number in self.path.frame.loops:
            run.foresight.compared(number, node, left_syntax, right_syntax, left, held)

    def note_remainder(self, node: ast.AST, dividend: Value, divisor: Value) -> None:
        """A remainder was computed in a loop."""
        if type(dividend) is int and type(divisor) is int and divisor:
            for run, number in self.path.frame.loops:
                run.foresight.divided(number, node, dividend, divisor)

    def note_recount(self, node: ast.Assign, value: int) -> None:
        """`self.size = min(self.size + 1, limit)`: a number that is made of what it was before."""
        target = node.targets[0]
        if isinstance(target, ast.Name):
            holder: Any = self.path.frame.namespace
            name = target.id
            own = any(isinstance(inner, ast.Name) and inner.id == name for inner in syntax_parts(node.value))
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            holder, name = self.path.frame.namespace.get(target.value.id), target.attr
            own = any(
                isinstance(inner, ast.Attribute) and inner.attr == name for inner in syntax_parts(node.value)
            )
        else:
            return
        if own:
            self.note_count(holder, name, 0, value)

    def note_growth(self, items: Seq) -> None:
        """A list was appended to."""
        for run, number in self.path.frame.loops:
            growth = run.grown.setdefault(id(items), (items, {}))[1]
            growth[number] = growth.get(number, 0) + 1


def names_of(holder: dict[str, Value] | Instance | Mapping) -> dict[str, Value] | dict[Any, Value]:
    """Where the holder of a number keeps it."""
    if isinstance(holder, Instance):
        return holder.attributes
    return holder.items if isinstance(holder, Mapping) else holder


def is_repeatable(newest: list[Value], each: int, rounds: int) -> bool:
    """Whether the items of one round can stand for those of others."""
    return len(newest) == each and each * rounds <= MOST_REPEATED and all(map(is_plain, newest))


def is_plain(item: Value) -> bool:
    """Whether a value has no graph: another round would have made one that is as good.  A text names one thing alone."""
    if isinstance(item, Tensor):
        return item.needs_grad() is False
    if isinstance(item, Seq):
        return item.exact and all(map(is_plain, item.items))
    return (is_constant(item) and not isinstance(item, str)) or isinstance(item, Number)


def asks_for_count(test: ast.expr, counted: set[str]) -> bool:
    """Whether a condition calls something (`len`, `memory.is_full()`) or names what is counted."""
    return any(
        isinstance(inner, ast.Call)
        or (isinstance(inner, ast.Name) and inner.id in counted)
        or (isinstance(inner, ast.Attribute) and inner.attr in counted)
        for inner in syntax_parts(test)
    )


def has_other_way(condition: ast.If | ast.IfExp) -> bool:
    """Whether something else is done where a condition does not hold: an `else`, or what follows a guard clause."""
    return isinstance(condition, ast.IfExp) or bool(condition.orelse) or leaves_block(condition.body)


def is_taken_first(node: ast.If, frame: Frame) -> bool:
    """Whether the first path takes an `if` of which nothing is known: no guard clause, and none that freezes some parameters."""
    if frame.loops and freezes_some(node):
        return False
    return bool(node.orelse) or not leaves_block(node.body) or refuses_without(node, frame)


def leaves_block(body: list[ast.stmt]) -> bool:
    """Whether a block ends by leaving: a guard clause."""
    last = body[-1] if body else None
    return isinstance(last, (ast.Return, ast.Continue, ast.Break)) or ends_program(last)


def is_number(value: Value) -> TypeGuard[float]:
    """Whether a value is a number that can be followed: not a truth, not infinite, not undefined."""
    return type(value) is int or (type(value) is float and isfinite(value))
