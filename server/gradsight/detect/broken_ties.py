"""Weights that a program has tied, and unties again: one place gets a new parameter, and the other keeps the old one.

*Tied*: `head.weight = table.weight`, one parameter in two places.  A tie is *broken* by a new parameter or a new module in one
of the places, and by `load_state_dict(..., assign=True)`, which puts new parameters into all of them.  It is told where both
are trained: they part from each other with the first step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.interp.syntax import called_attribute, statement_around
from gradsight.interp.syntax_parts import parts_of
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.tensors import Tensor
from gradsight.model.trace import AttributeSet, StateLoaded
from gradsight.model.values import Instance, Layer

KIND = "tie-broken"
COPIES = {"clone", "detach", "deepcopy", "copy"}
"""Who copies the shared weight into one of its places means to have two."""


@dataclass(slots=True)
class Tie:
    """One parameter in two places, each a module and the name of its attribute."""

    places: list[tuple[Any, str]]
    site: Site
    broken_at: Site | None = None
    is_assigned: bool = False
    """Whether it was broken by a state that was assigned."""


class BrokenTies:
    """Follows both places of a tie."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.ties: list[Tie] = []

    def on_attribute_set(self, fact: AttributeSet) -> None:
        value, place = fact.value, (fact.owner, fact.name)
        site = self.path.site(fact.node)
        for tie in self.ties:
            for index, (owner, name) in enumerate(tie.places):
                if (owner is fact.owner and name == fact.name) and isinstance(value, Tensor):
                    tie.broken_at = None if is_copied(site) else site
                elif owner is fact.old and isinstance(parameter_at((value, name)), Tensor):
                    tie.places[index] = (value, name)
                    tie.broken_at = site
        if isinstance(value, Tensor) and value.is_parameter:
            for owner, name in self.holders_of(value):
                if (owner, name) != place:
                    self.ties[:] = [tie for tie in self.ties if place not in tie.places]
                    self.ties.append(Tie([(owner, name), place], site))
                    return

    def on_state_loaded(self, fact: StateLoaded) -> None:
        if not fact.assign or fact.site is None or not self.ties:
            return
        inside = {id(part) for _, part in self.path.modules_in(fact.module)}
        for tie in self.ties:
            if all(id(owner) in inside for owner, _ in tie.places):
                tie.broken_at, tie.is_assigned = fact.site, True

    def holders_of(self, tensor: Tensor) -> Iterator[tuple[Any, str]]:
        """Where modules of the program hold a parameter."""
        around = [self.path.frame.receiver, *self.path.modules_made]
        seen: set[int] = set()
        for module in around:
            if not isinstance(module, (Instance, Layer)) or module.module is None:
                continue
            for _, part in self.path.modules_in(module):
                if id(part) not in seen:
                    seen.add(id(part))
                    yield from ((part, name) for name, one in part.attributes.items() if one is tensor)

    def finish(self) -> None:
        reached = {leaf for run in self.path.backwards for leaf in run.leaves}
        for tie in self.ties:
            if tie.broken_at is None:
                continue
            first, second = (parameter_at(place) for place in tie.places)
            if first is None or second is None or not {first, second} <= reached:
                continue
            if (first is second) is not tie.is_assigned:
                continue
            steps = [Step("made", tie.site, "tied here"), *self.path.call_steps(tie.broken_at)]
            self.claims.add(KIND, tie.broken_at, steps, name=spoken(tie.site))


def parameter_at(place: tuple[Any, str]) -> Tensor | None:
    owner, name = place
    if not isinstance(owner, (Instance, Layer)) or owner.module is None:
        return None
    found = owner.attributes.get(name)
    return found if isinstance(found, Tensor) and found.is_parameter else None


def is_copied(site: Site) -> bool:
    """Whether a statement puts a copy of something into its place."""
    statement = statement_around(site.node, site.frame)
    if statement is None:
        return False
    return any(called_attribute(call) in COPIES for call in parts_of(statement, ast.Call)) or any(
        part.attr == "data" for part in parts_of(statement, ast.Attribute)
    )


def spoken(site: Site) -> str:
    """The left side of the statement that ties: `self.output.weight`."""
    statement = statement_around(site.node, site.frame)
    return ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else "this weight"
