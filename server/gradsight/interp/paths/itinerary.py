"""Which paths of an entry are executed, and in which order: those to goals first.

A *goal* is an arm of a condition in which something is written, cut, registered, stepped or differentiated (a question to
the syntax tree).  The first path takes every `if`, the one that *passes by* takes none: together they have been in each arm
of independent flags.  What neither of them reached is named by the decision that leads there, and gets a path of its own.
So does a goal that was seen in one surrounding only, if what it touches is bound by an arm that is taken in one and passed
by in the other: of two such arms each is then seen with and without the other.  Where a function is executed by itself, arms in
other files of the workspace are in these two paths only: more of them are made where that file is analysed.

    if use_norm: h = norm(h)        the first path: both
    if use_gate: h += 1             the path that passes by: none; then, in its surrounding, the second alone

Conclusions that something was not done are drawn from paths that differ from the first one in single turns; as long as
such a conclusion stands, single turns are tried that nothing else asks for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple

from gradsight.interp.path_state import Decision
from gradsight.interp.paths.arms import touch_of, touch_of_arm
from gradsight.interp.paths.call_graph import leads_somewhere, summary_of
from gradsight.interp.syntax import ends_program
from gradsight.model.sites import Unit

MOST_PATHS = 10
MOST_GOALS = 40
"""How many paths an entry may have that each reach a goal which no other has reached."""
MOST_PAIRS = 12
"""How many paths an entry may have that see a goal in another surrounding."""
SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Raise)


class PathPlan(NamedTuple):
    """How a path goes where conditions are not known: the first choices, and whether it passes by all `if`s after them."""

    choices: list[bool]
    passes_by: bool = False
    wishes: dict[ast.AST, bool] = {}
    """How conditions are to turn out that are met after the first choices."""


class Turn(NamedTuple):
    """A condition, what it is taken to be, and whether it was decided before on the same path."""

    node: ast.AST
    outcome: bool
    later: bool


class Lead(NamedTuple):
    """The other way at one decision of a path that was executed."""

    trail: list[bool]
    position: int
    passes_by: bool
    turn: Turn
    is_goal: bool
    meets_others: bool
    unit: Unit
    wishes: dict[ast.AST, bool] = {}

    def plan(self) -> PathPlan:
        choices = [*self.trail[: self.position], not self.trail[self.position]]
        return PathPlan(choices, self.passes_by, self.wishes)


class Itinerary:
    """The plans of one entry that wait, by what they are good for."""

    def __init__(self, most_paths: int, home: str = "") -> None:
        self.most_paths = most_paths
        self.home = home
        """The file whose arms get paths of their own; empty if those of all files do."""
        self.goals: list[Lead] = []
        self.pairs: list[Lead] = []
        self.others: list[Lead] = []
        self.spare: list[Lead] = []
        """Single turns into arms that other paths have been in: for conclusions that need them."""
        self.planned: set[tuple[Turn, bool]] = set()
        """Turns that were taken or planned, and whether on paths that pass by."""
        self.taken: set[Turn] = set()
        self.binders: dict[str, int] = {}
        """How many of the conditions that were met have an arm that binds a name."""
        self.met: set[ast.AST] = set()
        self.paths = self.goals_tried = self.pairs_tried = 0
        self.has_passed_by = False
        self.fresh = 0
        """How many arms wait that a path which passes by would be in."""

    # -- the next path -----------------------------------------------------------------------------------------------

    def next_plan(self, needs_turns: bool) -> PathPlan | None:
        """What comes next; `needs_turns` while a conclusion stands that single turns could lift."""
        if self.fresh > 1 and not self.has_passed_by:
            self.fresh, self.has_passed_by = 0, True
            return PathPlan([], passes_by=True)
        while self.goals and self.goals_tried < MOST_GOALS:
            lead = self.goals.pop(0)
            if self.is_new(lead) and (self.paths < MOST_PATHS or not lead.turn.later):
                self.goals_tried += 1
                return lead.plan()
        if self.pairs and self.pairs_tried < MOST_PAIRS:
            self.pairs_tried += 1
            return self.pairs.pop(0).plan()
        while self.others and self.paths < self.most_paths:
            lead = self.others.pop(0)
            if self.is_new(lead):
                return lead.plan()
        if needs_turns and self.spare and self.paths < self.most_paths:
            return self.spare.pop(0).plan()
        return None

    def is_new(self, lead: Lead) -> bool:
        """Whether no path was in this arm meanwhile; one that was, in another surrounding, may not be enough."""
        if lead.turn not in self.taken or lead.turn.later:
            return True
        if lead.is_goal and lead.meets_others:
            self.pairs.append(lead)
        elif not lead.passes_by:
            self.spare.append(lead)
        return False

    def left_out(self) -> Iterable[tuple[Unit, ast.AST]]:
        """The places of goals that no path was left for."""
        waiting = [lead for lead in self.goals if not lead.turn.later and lead.turn not in self.taken]
        return [(lead.unit, place_of(lead.turn)) for lead in waiting]

    # -- what a path has shown ---------------------------------------------------------------------------------------

    def learn(
        self, plan: PathPlan, decisions: list[Decision], refused: bool, raised: bool, idle_file: str = ""
    ) -> None:
        """A path was executed: its turns are seen, and their other ways are planned.

        `idle_file`: the file that was executed, if nothing was made on the path that a gradient could go through; then what
        other files decided on the way leads nowhere.
        """
        for decision in decisions:
            for node, outcome in decision.turns:
                turn = Turn(node, outcome, decision.later)
                self.taken.add(turn)
                self.planned.add((turn, plan.passes_by))
                self.meet(node)
        trail = [decision.choice for decision in decisions]
        self.goals.extend(self.behind_scripted(plan, decisions, trail))
        detour: list[Lead] = []
        first = 0
        for index in range(len(plan.choices), len(decisions)):
            decision = decisions[index]
            turn = Turn(decision.node, not decision.outcome, decision.later)
            if (turn, plan.passes_by) in self.planned or (turn.later and plan.passes_by):
                continue
            self.planned.add((turn, plan.passes_by))
            if idle_file and not raised and decision.unit.path != idle_file and not decision.unit.library:
                continue
            if self.is_elsewhere(decision.unit) and not raised:
                # What another file raises is gone around, too.
                self.fresh += not turn.later and not turn.outcome
                continue
            if only_raises(turn) and not decision.is_tried:
                # The path would be the one that was executed, up to here.
                continue
            goal = next((node for node, out in decision.turns if leads_somewhere(node, not out)), None)
            meets = goal is not None and not turn.later and self.meets_others(goal, decision)
            lead = Lead(trail, index, plan.passes_by, turn, goal is not None, meets, decision.unit)
            if refused:
                detour.append(lead)
            elif not plan.passes_by and isinstance(decision.node, ast.If) and summary_of(decision.node).steps:
                # What is trained in some rounds only: the rounds without it come before all else.
                self.goals.insert(first, lead)
                first += 1
            else:
                (self.goals if goal is not None else self.others).append(lead)
            self.fresh += not refused and not turn.later and not turn.outcome
        if refused:
            # The program refused what it was given before it did anything: the way around is near.
            self.goals[:0] = detour[::-1]
        elif raised:
            self.go_around(trail, plan)

    def behind_scripted(self, plan: PathPlan, decisions: list[Decision], trail: list[bool]) -> Iterable[Lead]:
        """Goals that a path passed only because of a choice which led it there: the same way, with that choice changed.

        if autotune: ...                passed by, on the way to the loop
        for batch in batches:
            if autotune: step()         a goal of its own, that is met in the loop alone
        """
        for index, decision in enumerate(decisions[: len(plan.choices)]):
            if self.is_elsewhere(decision.unit):
                continue
            for node, outcome in decision.turns[1:]:
                turn = Turn(node, not outcome, decision.later)
                if turn in self.taken or (turn, plan.passes_by) in self.planned:
                    continue
                if leads_somewhere(node, not outcome):
                    self.planned.add((turn, plan.passes_by))
                    after = {one.node: one.outcome for one in reversed(decisions[index + 1 :])}
                    yield Lead(trail, index, plan.passes_by, turn, True, False, decision.unit, after)

    def is_elsewhere(self, unit: Unit) -> bool:
        """Whether a decision was made in another file of the workspace, whose arms get their paths when it is analysed itself."""
        return bool(self.home) and unit.path != self.home and not unit.library

    def meet(self, node: ast.AST) -> None:
        if node not in self.met:
            self.met.add(node)
            for name in touch_of(node).binds:
                self.binders[name] = self.binders.get(name, 0) + 1

    def meets_others(self, goal: ast.AST, decision: Decision) -> bool:
        """Whether an arm of another condition binds what the arm that was not taken touches."""
        outcome = next(not outcome for node, outcome in decision.turns if node is goal)
        touched = touch_of_arm(goal, outcome).names
        own = touch_of(goal).binds
        return any(self.binders.get(name, 0) > (name in own) for name in touched)

    def go_around(self, trail: list[bool], plan: PathPlan) -> None:
        """What a program raises hides all that follows: the turn that was taken last comes first."""
        found: tuple[int, list[Lead], Lead] | None = None
        for leads in (self.goals, self.others, self.spare):
            for lead in leads:
                if found is not None and lead.position <= found[0]:
                    continue
                if lead.trail is trail or (
                    lead.position < len(plan.choices)
                    and lead.trail[: lead.position + 1] == trail[: lead.position + 1]
                ):
                    found = (lead.position, leads, lead)
        if found is not None:
            found[1].remove(found[2])
            self.goals.insert(0, found[2])


def only_raises(turn: Turn) -> bool:
    """Whether a turn leads into an arm that refuses the program and does nothing else."""
    arm = getattr(turn.node, "body" if turn.outcome else "orelse", None)
    if not isinstance(arm, list) or not arm or not ends_program(arm[-1]):
        return False
    return all(isinstance(one, SIMPLE) for one in arm) and not leads_somewhere(turn.node, turn.outcome)


def place_of(turn: Turn) -> ast.AST:
    """Where the arm of a turn begins."""
    arm = getattr(turn.node, "body" if turn.outcome else "orelse", None)
    return arm[0] if isinstance(arm, list) and arm else turn.node
