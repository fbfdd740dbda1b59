"""Loops: how many rounds are executed, and what is no longer known of a loop that goes on after them.

A long loop, or one whose length is not known, is executed for its first rounds only.  What it counts and what it
collects would then look smaller than it is: a branch that waits for a full memory would never be taken.  If such a
branch was passed by, two more rounds follow in which counters are unknown and collections are longer than listed.
"""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterator
from typing import Any

from gradsight.interp.path_state import PathState
from gradsight.interp.python.loop_sampling import (
    FULL_UNROLL,
    MANY,
    ROUNDS_OF_A_LOOP,
    UNKNOWN_ROUNDS,
    LoopRun,
    LoopSampling,
    is_taken_first,
)
from gradsight.interp.syntax import changes_items, remembered
from gradsight.interp.syntax_parts import parts_of, syntax_parts
from gradsight.model.tensors import Tensor
from gradsight.model.trace import LoopEnded, PartsSorted
from gradsight.model.values import Instance, Layer, Mapping, Missing, Number, Seq, Value

__all__ = ["BREAK", "CONTINUE", "MANY", "ROUNDS_OF_A_LOOP", "Flow", "LoopRun", "Loops", "is_taken_first"]

BREAK = "break"
CONTINUE = "continue"
NO_MORE = Missing()
DEEPEST_ITEM = 4
"""How deep tuples are taken apart: nobody unpacks deeper ones, and their parts may be shared."""
MOST_NESTED = 256
"""How many times a body may be executed by the loops of one function that stand in each other."""
DEEPEST_LOOP = 5
"""In so many loops of one function every further one gets one round, while at most one of those around it is past its first."""
MOST_PARTS = 64 * 160
"""A loop goes through a model's parameters or modules one by one if they are at most so many, times the nodes of its body.

What stands in a loop inside of it counts there."""
SHARE_OF_PARTS = 2 / 3
"""The part of what a path has left that may be spent on that."""
PRICE_OF_SORTING = 4
"""The rounds of such a loop cost one part in so many: they do next to nothing, and what they sort out decides what is trained."""
Flow = Generator[Any, Any, Any]


class Loops(LoopSampling):
    """Loops, round by round."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.idle: set[ast.AST] = set()
        """Loops that have trained nothing when they were executed: an evaluation inside of a loop that trains, say.

        In later rounds of the loops around it, such a loop of unknown length gets one round as long as that stays so.
        """

    def do_for(self, node: ast.For | ast.AsyncFor) -> Flow:
        iterable = self.language.evaluate(node.iter)
        items, length = self.objects.iterate(iterable, ROUNDS_OF_A_LOOP)
        frame = self.path.frame
        outer = frame.loops
        done = len(self.path.log)
        run = LoopRun(node, self.path.site(node), length, since=done)
        run.sorts = self.is_sorting(node, iterable, length, outer)
        nested = self.rounds_nested(self.rounds_allowed(length), outer)
        limit = run.allowed = length if run.sorts and length is not None else nested
        is_repeated = length is None and self.was_idle(node, iterable, outer)
        limit = 1 if is_repeated else limit
        status: Any = None
        ended_by_break = False
        funds = paid = self.path.budget
        end = limit
        """The round that is not executed any more."""
        foreseeing = limit >= UNKNOWN_ROUNDS
        has_one_round = length != 1 and limit == 1
        rows = Rows(items, length, goes_on(iterable))
        cut_short = self.cut_short
        try:
            while True:
                item = self.take_row(rows, run, cut_short)
                if item is NO_MORE:
                    break
                number = run.number
                if number >= limit:
                    if holds_objects(item):
                        self.path.truncated = True
                    if holds_objects(item, tensors=False) and changes_items(node):
                        self.path.objects_passed_at = self.path.tick
                    target = self.next_round(run) if foreseeing else None
                    if target is not None:
                        if target > number:
                            self.skip(run, target - number)
                            item = self.take_row(rows, run, cut_short, target - number)
                            number = target
                            if item is NO_MORE:
                                break
                        end = number + 1
                    elif foreseeing:
                        foreseeing = False
                        end = number + (0 if has_one_round else self.later_rounds(run))
                    if number >= end and not self.has_just_trained(run):
                        self.path.left_after_one = self.path.left_after_one or run.number == 1
                        self.cut_off(run)
                        if holds_objects(item):
                            self.leave_unfilled(node)
                        break
                    if not foreseeing:
                        item = self.some_item(iterable, item, counts=counts_up(node.iter))
                        run.is_blurred = True
                run.number += 1
                frame.loops = (*outer, (run, number))
                self.language.assign(node.target, item)
                status = yield from self.language.block(node.body)
                if status is CONTINUE:
                    status = None
                elif status is BREAK:
                    ended_by_break = True
                    status = None
                    break
                elif status is not None:
                    return status
                if is_repeated and number == 0 and self.has_trained(done):
                    is_repeated, has_one_round, foreseeing = False, False, run.allowed >= UNKNOWN_ROUNDS
                    end = limit = run.allowed
                paid = self.path.budget = self.discounted(run, outer, paid)
                bound = self.rounds_affordable(run, funds, limit, nested)
                if bound < limit:
                    end = limit = bound
        finally:
            frame.loops = outer
            self.loop_ended(run, iterable)
            self.note_unfilled(run)
            self.note_training(node, run, done)
        if not ended_by_break and type(iterable) is Seq and iterable.once and iterable.exact and run.number:
            iterable.spent = iterable.spent or self.path.site(node.iter)
        if not ended_by_break and node.orelse:
            return (yield from self.language.block(node.orelse))
        return None

    def discounted(self, run: LoopRun, outer: tuple[Any, ...], paid: int) -> int:
        """What the path has left after a round, `paid` being what it had before; the outermost loop that sorts gives the discount."""
        left = int(self.path.budget)
        return paid - (paid - left) // PRICE_OF_SORTING if run.sorts and not outer else left

    def rounds_affordable(self, run: LoopRun, funds: int, limit: int, nested: int) -> int:
        """How many of the rounds what is left of the path's funds is enough for, as those that are over have cost."""
        left = self.path.budget
        if run.sorts:
            return run.number if run.number >= nested and left < funds * (1 - SHARE_OF_PARTS) else limit
        if run.number == 1 and run.length is not None and limit > UNKNOWN_ROUNDS:
            return max(UNKNOWN_ROUNDS, min(limit, left // (3 * max(1, funds - left))))
        return limit

    def leave_unfilled(self, node: ast.AST) -> None:
        """Lists that a loop over parameters or modules was filling when it was left: they have more than is known."""
        for name in lists_filled(node):
            value = self.path.frame.namespace.get(name)
            held = [value, *value.items.values()] if isinstance(value, Mapping) else [value]
            for one in held:
                if isinstance(one, Seq):
                    one.partial, one.unlisted = True, None

    def take_row(self, rows: Rows, run: LoopRun, cut_short: int, count: int = 1) -> Value:
        """The next item; a generator that was left before its end has more to give than it gave."""
        item = rows.take(count)
        if item is NO_MORE and rows.is_generator and self.cut_short != cut_short:
            item = rows.go_on()
            run.length = self.cut_length
        return item

    def rounds_allowed(self, length: int | None) -> int:
        """How often the body is executed: all rounds of a short loop, the first ones of a long or unknown one."""
        if length is None:
            return UNKNOWN_ROUNDS
        return length if length <= FULL_UNROLL else UNKNOWN_ROUNDS + 1

    def rounds_nested(self, rounds: int, outer: tuple[Any, ...]) -> int:
        """Loops in loops multiply: the inner ones of many get few rounds, and the last of all one."""
        # Those of callers stand around it, too, but nobody sees from its text how many there are.
        own = [number for run, number in outer if run.site.frame is self.path.frame]
        if len(own) >= DEEPEST_LOOP:
            return int(sum(number > 0 for number in own) <= 1)
        around = 1
        for run, _ in outer:
            around *= max(1, run.allowed)
        if around * rounds <= MOST_NESTED:
            return rounds
        return max(UNKNOWN_ROUNDS if around <= MOST_NESTED else 1, MOST_NESTED // around)

    def some_item(
        self, iterable: Value, item: Value, depth: int = DEEPEST_ITEM, counts: bool = False
    ) -> Value:
        """What a later round of a long loop gets: like `item`, its value no longer known; a loop that counts never comes below zero."""
        if not depth:
            return item
        if isinstance(item, (int, float)) and not isinstance(item, bool):
            return self.path.counted_from(item) if counts and type(item) is int and item >= 0 else Number()
        if isinstance(item, Seq) and item.kind == "tuple":
            parts = enumerate(item.items)
            return Seq(
                "tuple",
                [self.some_item(iterable, inner, depth - 1, counts and not place) for place, inner in parts],
            )
        return item

    def do_while(self, node: ast.While) -> Flow:
        frame = self.path.frame
        outer = frame.loops
        run = LoopRun(node, self.path.site(node), since=len(self.path.log))
        ended_by_break = False
        end = limit = run.allowed = self.rounds_nested(FULL_UNROLL, outer)
        unknown = run.allowed = self.rounds_nested(UNKNOWN_ROUNDS + 1, outer)
        foreseeing = unknown > 1
        try:
            while True:
                number = run.number
                frame.loops = (*outer, (run, number))
                known = self.path.truth(self.language.evaluate(node.test))
                if known is False:
                    break
                if not known or isinstance(node.test, ast.Constant):
                    limit = end = min(limit, unknown)
                if number >= limit:
                    target = self.next_round(run) if foreseeing else None
                    if target is not None:
                        self.skip(run, target - number)
                        number = target
                        end = number + 1
                        frame.loops = (*outer, (run, number))
                    elif foreseeing:
                        foreseeing = False
                        end = number + self.later_rounds(run)
                    if number >= end and not self.has_just_trained(run):
                        self.cut_off(run)
                        break
                run.number = number + 1
                status = yield from self.language.block(node.body)
                if status is BREAK:
                    ended_by_break = True
                    break
                if status is not None and status is not CONTINUE:
                    return status
        finally:
            frame.loops = outer
            self.loop_ended(run)
            self.note_unfilled(run)
        if not ended_by_break and node.orelse:
            return (yield from self.language.block(node.orelse))
        return None

    def has_just_trained(self, run: LoopRun) -> bool:
        """Whether the last round is the first one that stepped: a round follows, once, that finds what it left."""
        if run.is_prolonged or not self.path.log:
            return False
        rounds = {
            number
            for action in self.path.log[run.since :]
            if action.verb == "step"
            for loop, number in action.loops
            if loop is run
        }
        run.is_prolonged = rounds == {run.number - 1}
        return run.is_prolonged

    def is_sorting(
        self, node: ast.For | ast.AsyncFor, iterable: Value, length: int | None, outer: tuple[Any, ...]
    ) -> bool:
        """Whether the loop is gone through part by part: it stands in no other loop than those that do the same, or only freezes."""
        return (
            length is not None
            and (all(run.sorts for run, _ in outer) or only_freezes(node.body))
            and sorts_parts(iterable, node, length)
        )

    def was_idle(self, node: ast.AST, iterable: Value, outer: tuple[Any, ...]) -> bool:
        """Whether a loop over data has trained nothing in an earlier round of the loops around it."""
        listed = iterable.items if isinstance(iterable, Seq) else [iterable]
        is_data = not any(isinstance(one, Tensor) or holds_objects(one) for one in listed[:8])
        return is_data and node in self.idle and any(number for _, number in outer)

    def note_training(self, node: ast.AST, run: LoopRun, since: int) -> None:
        if self.has_trained(since):
            self.idle.discard(node)
        elif run.number:
            self.idle.add(node)

    def has_trained(self, since: int) -> bool:
        """Whether anything was differentiated, cleared or stepped since that entry of the log."""
        return any(action.verb not in ("train", "eval") for action in self.path.log[since:])

    def loop_ended(self, run: LoopRun, iterable: Value = None) -> None:
        if run.sorts and run.number == run.length and type(iterable) is Seq:
            self.path.tell(PartsSorted(run.node, iterable.items))
        if self.path.is_watched:
            self.path.tell(LoopEnded(run))


class Rows:
    """The items of a loop; where only the first of them are listed, the others are like the last one."""

    def __init__(self, items: Iterator[Value], length: int | None, goes_on: bool) -> None:
        self.items = items
        self.left = MANY if length is None else length
        self.is_generator = length == MANY
        self.goes_on = goes_on if length is None else length != MANY
        self.listed: list[Value] = []
        self.beyond = 0

    def take(self, count: int = 1) -> Value:
        """The next item, or the one `count` further on; what is skipped is gone."""
        item: Value = NO_MORE
        self.left -= count
        for _ in range(count):
            item = next(self.items, NO_MORE)
            if item is NO_MORE or (self.listed and is_blurred(self.listed[-1], item)):
                self.beyond += 1
            else:
                self.listed = [*self.listed[-1:], item]
        if not self.beyond or (item is NO_MORE and (self.left < 0 or not self.goes_on)) or not self.listed:
            return item
        return continued(self.listed[0], self.listed[-1], self.beyond)

    def go_on(self) -> Value:
        """There are more items after all."""
        self.goes_on = True
        return continued(self.listed[0], self.listed[-1], self.beyond) if self.listed else NO_MORE


def counts_up(iterable: ast.AST) -> bool:
    """Whether a loop goes over rounds or places: `range(n)`, `range(first, n)`, `enumerate(parts)`."""
    if not isinstance(iterable, ast.Call) or not isinstance(iterable.func, ast.Name):
        return False
    return iterable.func.id == "enumerate" or (iterable.func.id == "range" and len(iterable.args) < 3)


def is_blurred(before: Value, item: Value, depth: int = DEEPEST_ITEM) -> bool:
    """Whether a number is no longer known that was known in the item before."""
    if isinstance(before, Seq) and isinstance(item, Seq):
        return (
            before is not item
            and depth > 0
            and any(is_blurred(one, other, depth - 1) for one, other in zip(before.items, item.items))
        )
    return type(before) is int and isinstance(item, Number)


def continued(before: Value, last: Value, distance: int, depth: int = DEEPEST_ITEM) -> Value:
    """The item some places after the last one: whole numbers go on counting."""
    if not depth:
        return last
    if type(before) is int and type(last) is int:
        return last + (last - before) * distance
    if isinstance(last, Seq) and last.kind == "tuple" and isinstance(before, Seq):
        pairs = zip(before.items, last.items)
        return Seq("tuple", [continued(one, other, distance, depth - 1) for one, other in pairs])
    return last


def sorts_parts(iterable: Value, node: ast.For | ast.AsyncFor, length: int) -> bool:
    """Whether a short body is executed for each of a model's parameters or modules: which of them it takes is up to each."""
    if isinstance(iterable, (Layer, Instance)):
        # A chain of plain layers: the last of them decides what comes out.
        parts = [value for key, value in iterable.attributes.items() if key.isdigit()]
        if len(parts) != length or not all(
            isinstance(one, Layer) and "0" not in one.attributes for one in parts
        ):
            return False
    elif type(iterable) is not Seq or not iterable.items or not holds_objects(iterable.items[0]):
        return False
    nodes = sum(len(syntax_parts(statement)) for statement in node.body)
    return length * (nodes - nodes_in_loops(node)) <= MOST_PARTS


def only_freezes(body: list[ast.stmt]) -> bool:
    """Whether statements do nothing but say of something whether it needs gradients: half of a model that is frozen trains."""
    return all(
        only_freezes([*one.body, *one.orelse])
        if isinstance(one, ast.If)
        else (
            isinstance(one, ast.Assign)
            and all(
                isinstance(target, ast.Attribute) and target.attr == "requires_grad" for target in one.targets
            )
        )
        or (
            isinstance(one, ast.Expr)
            and isinstance(one.value, ast.Call)
            and isinstance(one.value.func, ast.Attribute)
            and one.value.func.attr == "requires_grad_"
        )
        for one in body
    )


def nodes_in_loops(node: ast.AST) -> int:
    """How many nodes of the body of a loop stand in the bodies of loops inside of it."""
    bodies = [loop.body for loop in parts_of(node, ast.For) if loop is not node]
    return len({part for body in bodies for statement in body for part in syntax_parts(statement)})


def goes_on(iterable: Value) -> bool:
    """Whether a row of unknown length may have more items than are listed: modules list their parts."""
    return not isinstance(iterable, (Instance, Layer))


FILLING = frozenset({"append", "extend", "insert", "add", "update"})
"""How a loop puts what it goes over into lists."""


def lists_filled(node: ast.AST) -> frozenset[str]:
    """The names of the lists that a loop fills: `decay.append(p)`, `groups[key].append(p)`."""
    found: frozenset[str] = remembered(node, "lists filled", _lists_filled)
    return found


def _lists_filled(node: ast.AST) -> frozenset[str]:
    owners = [
        call.func.value
        for call in parts_of(node, ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr in FILLING
    ]
    return frozenset(
        root.id
        for owner in owners
        if isinstance(root := owner.value if isinstance(owner, ast.Subscript) else owner, ast.Name)
    )


def holds_objects(item: Value, depth: int = DEEPEST_ITEM, tensors: bool = True) -> bool:
    """Whether a loop variable stands for a parameter or module of its own."""
    if isinstance(item, Seq):
        return depth > 0 and any(holds_objects(inner, depth - 1, tensors) for inner in item.items[:8])
    if isinstance(item, Tensor):
        return tensors and item.is_leaf and item.requires_grad is not False
    return isinstance(item, (Layer, Instance))
