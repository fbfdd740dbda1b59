"""What the detectors of a path claim: each claim once per place, none where the program waits for the error."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.meant_cuts import is_meant
from gradsight.detect.missing_claims import ABSENCES, GRANTED_ONLY, ClaimKey
from gradsight.detect.passed_arms import may_lift
from gradsight.detect.path import Path
from gradsight.detect.wording import code_at
from gradsight.interp.library_places import steps_for_user
from gradsight.interp.option_defaults import needs_many_processes
from gradsight.interp.path_state import Arm
from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import syntax_parts
from gradsight.model.events import Event, Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor

REFUSALS = frozenset({
    "leaf-written", "shared-view-written", "saved-overwritten", "out-refused", "numpy-refused", "backward-without-graph",
    "backward-twice", "state-carried", "non-scalar-backward", "non-leaf-optimized", "non-leaf-copied", "grad-of-unused",
    "grad-is-none", "grad-of-non-leaf", "gradient-count", "before-super-init", "parameter-refused",
    "requires-grad-refused", "gradient-refused", "written-in-transform", "optimizer-refused", "function-refused",
    "checkpoint-refused",
})  # fmt: skip
"""What torch, or Python, answers with an exception."""
IMMEDIATE = REFUSALS - {"gradient-count", "grad-of-non-leaf", "grad-of-unused", "state-carried"}
"""Those that are noticed when the exception is raised."""


class Claims:
    """The claims of one path, and what else its end is judged by.

    `granted`: what could have been missing at a place, and was there.  `doubts`: something was missing at a place, and
    these branches had not been taken in loops that were left before their end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: list[Event] = []
        self.reported: set[Any] = set()
        self.granted: set[ClaimKey] = set()
        self.explained: set[Tensor] = set()
        """Parameters of which a claim says already why no optimizer moves them."""
        self.doubts: dict[ClaimKey, frozenset[Arm]] = {}

    def add(
        self,
        kind: str,
        site: Site,
        steps: list[Step] | None = None,
        assumption: str = "",
        key: Any = None,
        **names: Any,
    ) -> None:
        """Claim something once per place (and `key`)."""
        path = self.path
        if path.premises:
            if kind == "not-registered":
                # The module that the parameters belong to may be registered under another name.
                return
            if kind == "leaf-written" and not path.backwards and path.context != "script":
                # Whoever calls such a helper has switched grad mode off: it would not run otherwise.
                return
            assumption = assumption or "; ".join(path.premises)
        is_evident = bool(assumption) and (bool(path.premises) or assumption in path.told_premises)
        if kind in REFUSALS and (self.path.frame.expecting if kind in IMMEDIATE else site.expected):
            return
        if is_meant(kind, site):
            return
        if site.unit.library or (site.library and kind == "inplace-recorded"):
            # Of what a library does there is nothing to say but its faults, and those where the user's code stands.
            return
        identity = (kind, site.key, key)
        if identity in self.reported:
            return
        self.reported.add(identity)
        if kind in ABSENCES - GRANTED_ONLY:
            doubts = frozenset(branch for branch in self.path.waiting if may_lift(kind, branch))
            self.doubts[kind, names.get("granted_at", site.key)] = doubts
        if assumption and kind == "saved-overwritten" and self.is_asked_in_place():
            # Whoever sets such a flag answers for backward: it is for inference.
            return
        if self.path.unheard:
            return
        trail = steps_for_user(steps or ())
        guards = self.branches_of(site.guards)
        nested = max(1, len(guards))
        for step in trail:
            others = self.branches_of(getattr(step.place, "guards", ()))
            nested = max(nested, len(others))
            guards |= others
        alternatives = max(0, len(guards) - nested)
        if guards and not alternatives and self.needs_many_processes(site, trail):
            alternatives = 1
        names.setdefault("here", code_at(site))
        if isinstance(site.node, (ast.BinOp, ast.Compare, ast.UnaryOp)):
            names.setdefault("symbol", names["here"])
        context = "evidence" if is_evident else path.context
        self.events.append(Event(kind, site, trail, names, assumption, alternatives, context))

    def is_asked_in_place(self) -> bool:
        """Whether this path supposes that an undecided flag asks for work in place."""
        return any(
            decision.choice and remembered(decision.node, "names_in_place", names_in_place)
            for decision in self.path.decisions
        )

    def needs_many_processes(self, site: Site, trail: tuple[Step, ...]) -> bool:
        """Whether a line that every process executes is at fault only where a group runs, and the program starts none."""
        if "torch.distributed" in self.path.flags:
            return False
        before = {guard for step in trail for guard in getattr(step.place, "guards", ())}
        before.difference_update(site.guards)
        return any(
            id(decision.key) in before and needs_many_processes(decision.key, decision.choice)
            for decision in self.path.decisions
        )

    def branches_of(self, guards: tuple[Any, ...]) -> set[Any]:
        """The undecided branches behind guards: one that is taken round after round is one branch.

        The way that a plain start of the program takes is no branch.
        """
        open_guards = [guard for guard in guards if guard not in self.path.usual_ways]
        return {self.path.branches.get(guard, guard) for guard in open_guards}


def names_in_place(node: ast.AST) -> bool:
    """Whether a condition asks for a flag that is named after work in place."""
    test = getattr(node, "test", node)
    names = (getattr(part, "id", "") or getattr(part, "attr", "") for part in syntax_parts(test))
    return any("inplace" in name or "in_place" in name for name in names)
