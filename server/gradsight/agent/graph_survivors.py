"""Graphs that outlive their step, without a word of the program's text: what a watch can know of lists and totals.

Looked at are some steps only.  A *survivor* is a tensor that is still there in a later one, though backward has freed what
its graph had saved; one line whose tensors of three steps survive keeps the graphs of all.  A *total* is a scalar sum whose
chain of additions goes back through three such steps: `total = total + loss`.
"""

from __future__ import annotations

import ast
import weakref
from collections.abc import Iterator
from typing import Any

import torch

from gradsight.agent.definitions import place_of_expression
from gradsight.agent.faults import Fault, FaultStep, Ledger, quietly
from gradsight.agent.graph import Node, is_freed
from gradsight.agent.kept_graphs import PUTS
from gradsight.agent.numbering import node_of, number_of
from gradsight.agent.sites import FrameKey, SourceRange, Stack, place_of, statement_of, text_of, tree_of

_LONG_ENOUGH = 3
_PER_LINE = 8
_MOST_LINES = 2_000
_LONGEST_CHAIN = 4_096
_NEAR = 48
_SUMS = frozenset(("add", "add_", "__add__", "__radd__", "__iadd__", "sub", "__sub__", "__isub__"))
_ADDITIONS = ("AddBackward0", "SubBackward0")


class GraphSurvivors:
    """Hears of what is made in the steps that are looked at; `step` is the number of the running one."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.step = 0
        self._made: dict[FrameKey, dict[int, list[weakref.ref[torch.Tensor]]]] = {}
        self._sums: dict[FrameKey, dict[int, int]] = {}
        self._found: dict[FrameKey, Fault] = {}

    @quietly
    def made(self, name: str, result: Any, stack: Stack) -> None:
        """A call of the user's line has made a tensor of the graph."""
        if not stack or stack[0] in self._found:
            return
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if not isinstance(tensor, torch.Tensor) or not tensor.requires_grad:
                continue
            if name in _SUMS and tensor.dim() == 0:
                self._summed(tensor, stack[0])
            if len(self._made) < _MOST_LINES or stack[0] in self._made:
                kept = self._made.setdefault(stack[0], {}).setdefault(self.step, [])
                if len(kept) < _PER_LINE:
                    kept.append(weakref.ref(tensor))

    def _summed(self, tensor: torch.Tensor, line: FrameKey) -> None:
        node = node_of(tensor)
        earlier = self._sums.setdefault(line, {})
        if node is not None and len(earlier.keys() - {self.step}) >= _LONG_ENOUGH - 1:
            chain, terms = _chain(node)
            back = [step for step, number in earlier.items() if step != self.step and number in chain]
            if len(back) >= _LONG_ENOUGH - 1 and any(map(_is_used_up, terms[1:])):
                self._found[line] = _fault_of_total(line)
        earlier[self.step] = number_of(node)

    @quietly
    def look(self) -> None:
        """Which lines have survivors of enough earlier steps."""
        for line, by_step in list(self._made.items()):
            kept = [step for step, refs in by_step.items() if step < self.step and any(map(_survives, refs))]
            if len(kept) >= _LONG_ENOUGH:
                self._found.setdefault(line, _fault_of_list(line))
                del self._made[line]

    def faults(self) -> list[Fault]:
        """What was found so far, each line once."""
        self.look()
        seen: dict[tuple[str, int, int], Fault] = {}
        for fault in self._found.values():
            seen.setdefault((fault.place.filename, fault.place.cell, fault.place.row), fault)
        return list(seen.values())


def _survives(reference: weakref.ref[torch.Tensor]) -> bool:
    tensor = reference()
    return tensor is not None and _is_used_up(node_of(tensor))


def _is_used_up(node: Node) -> bool:
    """Whether backward has freed something in this graph, near its end: no other backward can go through it."""
    seen: set[Node] = set()
    todo = [node]
    while todo and len(seen) < _NEAR:
        each = todo.pop(0)
        if each is None or each in seen:
            continue
        if is_freed(each):
            return True
        seen.add(each)
        todo += [below for below, _ in each.next_functions]
    return False


def _chain(node: Node) -> tuple[set[int], list[Node]]:
    """The numbers of the additions below this one, itself included, and what was added, latest first."""
    numbers: set[int] = set()
    terms: list[Node] = []
    todo = [node]
    while todo and len(numbers) < _LONGEST_CHAIN:
        each = todo.pop(0)
        if each is None or number_of(each) in numbers:
            continue
        if each.name() in _ADDITIONS:
            numbers.add(number_of(each))
            todo += [below for below, _ in each.next_functions]
        elif len(terms) < _NEAR:
            terms.append(each)
    return numbers, terms


def _fault_of_total(line: FrameKey) -> Fault:
    statement = statement_of(line)
    place, holder = place_of(line), ""
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        holder = ast.unparse(target)
        place = place_of_expression(line, statement)
    return _fault(place, f", in `{holder}`" if holder else "")


def _fault_of_list(line: FrameKey) -> Fault:
    """At the statement that puts the tensor somewhere, where the text shows it; else at the line that makes it."""
    for value, holder in _puts_of(line):
        return _fault(place_of_expression(line, value), f", in `{ast.unparse(holder)}`")
    return _fault(place_of(line), "")


def _fault(place: SourceRange, where: str) -> Fault:
    message = f"`{text_of(place)}` keeps the graph of every step in memory{where}, and no later `backward()` needs it"
    step = FaultStep("made", "use `.item()` or `.detach()` here", place)
    return Fault("graph-kept-alive", message, place, (step,), "warning", {})


def _puts_of(line: FrameKey) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is put where: by the statement of this line itself, or by one in its file that names what this line binds."""
    statement, tree = statement_of(line), tree_of(line.code.co_filename)
    if statement is None or tree is None:
        return
    yield from _puts_in(statement, None)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], (ast.Name, ast.Attribute)):
        bound = ast.unparse(statement.targets[0])
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt):
                yield from _puts_in(node, bound)


def _puts_in(statement: ast.stmt, name: str | None) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and call.func.attr in PUTS and call.args:
            if name is None or any(name == ast.unparse(each) for each in call.args):
                yield call.args[-1], call.func.value
    elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        if name is None or name == ast.unparse(statement.value):
            yield statement.value, statement.targets[0].value
