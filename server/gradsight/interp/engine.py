"""The whole machine, and the entries through which it is started.

*Entry*: something that is executed by itself: a module's top level, or a function that nothing else executed.
*Paths* of an entry: first the plain one, then one for each branch arm that has not been seen yet, within a budget.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.machine import PathEnded, Program, RaisedError
from gradsight.interp.protocol import Protocol
from gradsight.interp.sites import Frame, Unit
from gradsight.interp.tensors import Maybe, Tensor
from gradsight.interp.values import PythonModule, Scope, Unknown, tensors_in
from gradsight.model.events import Event


class Machine(Protocol):
    """One path through one entry."""

    def __init__(self, program: Program, module: PythonModule, script: list[bool], budget: int) -> None:
        super().__init__(program, module, script, budget)
        self.retaining = []
        self.gradient_ticks = {}
        self.live_gradient_ticks = {}
        self.cleared_ticks = {}
        self.all_clears = {}
        self.cut_leaves = {}
        self.declared = {}
        self.terms = []
        self.totals = []
        self.replacements = []
        self.attribute_sites = {}
        self.written_without_grad = []
        self.recorded_writes = []

    def block(self, body: list[ast.stmt]) -> Any:
        for statement in body:
            self.statement = statement
            break
        return super().block(body)

    def run_units(self, units: list[Unit], namespace: dict[str, Any]) -> None:
        """Execute a module's top level."""
        scope = Scope(namespace, None)
        for unit in units:
            frame = Frame("<module>", unit, namespace, scope, 0)
            self.frame = frame
            self.execute(unit.tree)


def run_script(program: Program, module: PythonModule, units: list[Unit], budget: int = 400_000, most_paths: int = 12) -> list[Event]:
    """Every event on the explored paths of a module's top level."""
    events: list[Event] = []
    seen: set[Any] = set()
    pending: list[list[bool]] = [[]]
    covered: set[tuple[int, bool]] = set()
    paths = 0
    executed: set[int] = set()
    while pending and paths < most_paths and budget > 0:
        script = pending.pop(0)
        machine = Machine(program, module, script, budget)
        paths += 1
        try:
            machine.run_units(units, {})
        except (PathEnded, RaisedError, RecursionError):
            pass
        try:
            machine.finish()
        except (PathEnded, RaisedError):
            pass
        budget = machine.budget
        executed |= machine.executed
        for event in machine.events:
            key = (event.kind, event.place.key)
            if key not in seen:
                seen.add(key)
                events.append(event)
        for decision in machine.decisions:
            covered.add((id(decision.node), decision.choice))
        for index, decision in enumerate(machine.decisions):
            if index < len(script):
                continue
            flipped = (id(decision.node), not decision.choice)
            if flipped not in covered:
                covered.add(flipped)
                pending.append([d.choice for d in machine.decisions[:index]] + [not decision.choice])
    program.executed = executed
    return events


__all__ = ["Machine", "Maybe", "Tensor", "Unknown", "run_script", "tensors_in"]
