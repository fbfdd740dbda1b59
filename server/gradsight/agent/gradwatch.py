"""Who holds a `.grad`, who overwrites it, and who reads the old name afterwards.

`g = w.grad` makes a second name for one tensor.  A *hold* is such a name: the line that took it, and when.  Reading the
tensor on a line that did not fetch `.grad` anew goes through a hold; if the tensor was written since, the reader sees
another value than the one that was taken.
"""

from __future__ import annotations

import ast
import gc
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch

from gradsight.agent.faults import Fault, Ledger, quietly, step_at
from gradsight.agent.oplog import LoggedWrite, OpLog, operator_label
from gradsight.agent.sites import FrameKey, SourceRange, Stack, line_of, place_of, statement_of, text_of
from gradsight.agent.touches import Touches

_MOST_HOLDS = 64


@dataclass
class Hold:
    """A name taken for a `.grad` tensor."""

    stack: Stack
    clock: int
    keeps: bool


@dataclass
class _Watched:
    reference: weakref.ref[torch.Tensor]
    holds: list[Hold] = field(default_factory=list)
    fresh_line: tuple[int, int] = (0, 0)
    fetched: int = 0


@dataclass(frozen=True)
class NoneRead:
    """`.grad` was read and was None."""

    stack: Stack
    is_leaf: bool
    retains: bool
    tensor_id: int
    made_by: Any
    backwards: int


class GradWatch:
    """Follows the `.grad` tensors that user code has taken."""

    def __init__(self, log: OpLog, ledger: Ledger) -> None:
        self.log = log
        self.ledger = ledger
        self.watched: dict[int, _Watched] = {}
        self.none_reads: list[NoneRead] = []
        self.none_read_ids: set[int] = set()
        self.touches: Touches | None = None

    @quietly
    def fetched(self, grad: torch.Tensor, stack: Stack, directly: bool, always: bool = False) -> None:
        """`.grad` returned this tensor on this line; `directly` when the user's own code asked for it."""
        if self.touches is not None and directly:
            self.touches.note_gradient(grad, stack, self.log.clock)
        watched = self.watched.get(id(grad))
        if watched is None or watched.reference() is not grad:
            if not directly and not always:
                return
            watched = self.watched[id(grad)] = _Watched(weakref.ref(grad))
            if len(self.watched) > 4096:
                self.watched = {
                    key: item for key, item in self.watched.items() if item.reference() is not None
                }
        if stack:
            line = (id(stack[0].code), line_of(stack[0]))
            watched.fetched = watched.fetched + 1 if line == watched.fresh_line else 1
            watched.fresh_line = line
        if directly and stack:
            self._hold(watched, stack)

    def _hold(self, watched: _Watched, stack: Stack) -> None:
        line = (id(stack[0].code), line_of(stack[0]))
        keeps = _keeps_value(statement_of(stack[0]))
        if not keeps:
            watched.holds = [
                hold for hold in watched.holds if (id(hold.stack[0].code), line_of(hold.stack[0])) != line
            ]
        if len(watched.holds) < _MOST_HOLDS:
            watched.holds.append(Hold(stack, self.log.clock, keeps))

    def is_gradient(self, tensor: torch.Tensor) -> bool:
        """Whether this is a `.grad` that user code has taken, or shows one in another shape."""
        whole = tensor._base if tensor._is_view() else tensor
        watched = self.watched.get(id(whole))
        return watched is not None and watched.reference() is whole

    @quietly
    def used(self, tensor: torch.Tensor, stack: Stack, in_place: bool, directly: bool) -> None:
        """A function was called with a watched tensor.

        On a line that fetched `.grad`, as many uses are fresh as there were fetches; what an in-place method returns is
        the same tensor again and costs nothing.
        """
        watched = self.watched.get(id(tensor))
        if watched is None or watched.reference() is not tensor or not stack:
            return
        if watched.fresh_line == (id(stack[0].code), line_of(stack[0])):
            if watched.fetched > 0 or not directly:
                watched.fetched -= directly and not in_place
                return
        if in_place:
            for hold in watched.holds:
                hold.clock = self.log.clock + 1
            return
        self._judge(watched, tensor, stack)

    def _judge(self, watched: _Watched, tensor: torch.Tensor, reader: Stack) -> None:
        for hold in watched.holds:
            write = self._first_write_after(tensor, hold.clock)
            if write is not None:
                self._report(hold, write, reader)
                return

    def _first_write_after(self, tensor: torch.Tensor, clock: int) -> LoggedWrite | None:
        for write in self.log.writes_to(tensor) or ():
            if write.clock > clock and write.stack:
                return write
        return None

    @quietly
    def finish(self) -> None:
        """At the end: gradients of non-leaves that nobody kept, and collections of one overwritten gradient."""
        for read in self.none_reads:
            if read.is_leaf or read.retains or not read.stack:
                continue
            self.ledger.sight("grad-of-non-leaf", read.stack)
            if not read.backwards:
                continue
            if not _asks_for_none(read.stack[0]):
                self._report_non_leaf(read)
        for watched in self.watched.values():
            tensor = watched.reference()
            kept = [hold for hold in watched.holds if hold.keeps]
            if tensor is None or len(kept) < 2:
                continue
            write = self._first_write_after(tensor, kept[0].clock)
            if write is None or not _is_in_collections(tensor):
                continue
            self._report(kept[0], write, ())

    def _report_non_leaf(self, read: NoneRead) -> None:
        place = place_of(read.stack[0])
        made = self.log.maker(read.made_by) if read.made_by is not None else None
        message = f"`{text_of(place)}` is None: the tensor is computed, and only leaves keep their gradient"
        steps = (
            step_at("made", f"computed here by `{operator_label(made.name)}`", made.stack)
            if made is not None
            else ()
        )
        self.ledger.add(Fault("grad-of-non-leaf", message, place, steps, "warning", {}))

    def _report(self, hold: Hold, write: LoggedWrite, reader: Stack) -> None:
        place = place_of(hold.stack[0])
        by = "`backward()`" if write.node.endswith("AccumulateGrad") else f"`{operator_label(write.name)}`"
        source = _grad_expression(place) or "`.grad`"
        message = f"this is {source} itself: {by} changes it before it is read, so clone it"
        steps = step_at("written", f"{by} changes it here", write.stack)
        if reader:
            steps += step_at("read", "read here, with the new value", reader)
        self.ledger.add(
            Fault(
                "grad-alias-overwritten",
                message,
                place,
                steps,
                severity="warning",
                evidence={
                    "operator": operator_label(write.name),
                    "node": write.node,
                    "fix": "use .detach().clone()",
                },
            )
        )


def _grad_expression(place: SourceRange) -> str:
    text = text_of(place)
    return f"`{text}`" if text.endswith(".grad") else ""


def _asks_for_none(key: FrameKey) -> bool:
    """Whether the read is a question (`x.grad is None`, `if x.grad`) and no use."""
    place = place_of(key)
    statement = statement_of(key)
    for node in ast.walk(statement) if statement is not None else ():
        tests: list[ast.expr] = []
        if isinstance(node, ast.Compare) and any(
            isinstance(item, ast.Constant) and item.value is None for item in (node.left, *node.comparators)
        ):
            tests = [node]
        elif isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
            tests = [node.test]
        for test in tests:
            if test.lineno <= place.row <= (test.end_lineno or 0) and any(
                isinstance(item, ast.Attribute) and item.attr == "grad" and item.lineno == place.row
                for item in ast.walk(test)
            ):
                return True
    return False


_REBINDS = (ast.Assign, ast.AnnAssign, ast.AugAssign)


def _keeps_value(statement: ast.stmt | None) -> bool:
    """Whether running this statement again leaves the value of the first run reachable."""
    if statement is None or not isinstance(statement, (*_REBINDS, ast.Expr)):
        return False
    if isinstance(statement, ast.Expr):
        call = statement.value
        return (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr in ("append", "insert", "extend", "appendleft", "setdefault", "add", "put")
        )
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return any(
        isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Constant) for target in targets
    )


def _is_in_collections(tensor: torch.Tensor) -> bool:
    count = 0
    for referrer in gc.get_referrers(tensor):
        if isinstance(referrer, list):
            count += sum(1 for item in referrer if item is tensor)
        elif isinstance(referrer, dict):
            count += sum(1 for item in referrer.values() if item is tensor)
    return count >= 2
