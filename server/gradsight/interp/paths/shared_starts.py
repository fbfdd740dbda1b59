"""What the paths of one entry have in common: the object that a method is executed on is made once, if they make it the same.

A path whose choices are those that another made until its object was there goes on from that moment
(`path_snapshot.py`), with the budget that it would have left.
"""

from __future__ import annotations

import ast

from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.itinerary import PathPlan
from gradsight.interp.paths.path_snapshot import PathSnapshot, Unsavable
from gradsight.model.values import Instance

WORTH_KEEPING = 200
"""Syntax nodes: what costs less to make is made again."""


class KeptStart:
    """A path at the moment when its object was there, and on which way it came so far."""

    def __init__(
        self, machine: Machine, receiver: Instance, plan: PathPlan, given: int, shared: list[object]
    ) -> None:
        self.machine = machine
        self.receiver = receiver
        self.spent = given - machine.budget
        self.passes_by, self.wishes = plan.passes_by, plan.wishes
        self.scripted = len(plan.choices)
        self.choices = [decision.choice for decision in machine.decisions]
        self.met = [decision.node for decision in machine.decisions]
        self.changes = machine.entry.changes_of_shared()
        self.made = len(machine.activations), len(machine.modules_made)
        self.snapshot = PathSnapshot(machine, shared)

    def is_on_the_way(self, plan: PathPlan) -> bool:
        """Whether a path with that plan makes the same choices until then."""
        known = min(len(plan.choices), len(self.choices))
        if plan.choices[:known] != self.choices[:known]:
            return False
        if known == len(self.choices):
            return True
        rest = self.met[known:]
        if (
            self.scripted > known
            or not plan.wishes.keys().isdisjoint(rest)
            or not self.wishes.keys().isdisjoint(rest)
        ):
            return False
        return self.passes_by is plan.passes_by or not any(
            isinstance(node, (ast.If, ast.IfExp)) for node in rest
        )

    def go_back(self) -> None:
        self.machine.end_generators()
        self.machine.let_go(*self.made)
        self.snapshot.restore()
        self.machine.entry.undo_changes_of_shared(self.changes)


class SharedStart:
    """The starts of an entry's paths."""

    def __init__(self, shared: list[object]) -> None:
        self.kept: list[KeptStart] = []
        self.shared = shared
        self.receiver: Instance | None = None
        """The object of the path that begins, if it was made before."""
        self.plan, self.given, self.has_all = PathPlan([]), 0, False

    def begin(self, plan: PathPlan, budget: int, making: int) -> Machine | None:
        """The machine of a path that begins with its object made; None if it has to be made.

        With less left than `making`, what an object may cost, another one would be made than before: one with less in it.
        """
        self.plan, self.given, self.receiver = plan, budget, None
        self.has_all = budget >= making
        for kept in self.kept if self.has_all else ():
            if kept.is_on_the_way(plan):
                kept.go_back()
                self.receiver = kept.receiver
                kept.machine.budget = budget - kept.spent
                kept.machine.script = plan.choices
                return kept.machine
        return None

    def keep(self, machine: Machine, receiver: Instance) -> None:
        """The object was made: later paths may begin here."""
        spent = self.given - machine.budget
        if not self.has_all or spent < WORTH_KEEPING or machine.is_watched or machine.generators:
            return
        try:
            self.kept.append(KeptStart(machine, receiver, self.plan, self.given, self.shared))
        except Unsavable:
            return
