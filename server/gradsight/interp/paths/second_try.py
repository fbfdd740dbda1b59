"""Paths that came to no end: those on which the limit of work was reached, and those that raised before anything was trained.

The first are tried once more, and models are followed no further then than a share of the work allows.  After the others, what
trains in the file is executed by itself: it was given something, a default or a guess, that it does not work with.

A script that only shows its model, `print(Net()(torch.randn(2, 3)).shape)`, says nothing of a backward: what it calls with grad mode on
is executed by itself, as if there were no such script.
"""

from __future__ import annotations

import ast

from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.call_graph import CallGraph, summary_of


class SecondTry:
    """How the paths of an entry ended; `is_allowed`: whether something is trained on them."""

    def __init__(self, is_allowed: bool) -> None:
        self.is_allowed = is_allowed
        self.is_on = False
        """Whether the paths are second tries."""
        self.has_come_far = False
        """Whether one of them came to its end, trained something, or raised with nothing left to chance."""
        self.only_shows = True
        """Whether they all came to their end, and nothing was trained on any of them, nor prepared for that."""
        self.called_quietly: set[ast.AST] = set()
        """Functions that were called with grad mode off."""

    def note(self, machine: Machine, raised: bool) -> None:
        """A path was executed."""
        is_certain = not (raised and machine.decisions)
        self.has_come_far = self.has_come_far or is_certain or bool(machine.log)
        trains = machine.log or machine.backwards or machine.has_transformed
        self.only_shows = self.only_shows and not (raised or trains)
        self.called_quietly |= machine.executed_quietly

    def is_wanted(self, machine: Machine) -> bool:
        """Whether the path that came to no end is tried once more; then all that follow are such tries.

        Where it met no model, it would come to the same place once more.
        """
        if self.is_on or not (self.is_allowed and machine.ended_early and machine.budget < 0):
            return False
        if not machine.language.has_met_models:
            return False
        self.is_on = True
        return True


def trained_in(calls: CallGraph) -> set[ast.AST]:
    """The functions that differentiate or step."""
    return {node for nodes in calls.by_name.values() for node in nodes if summary_of(node).steps}
