"""Lists that are all one list: `losses = [[]] * 3`, and what is put into one entry is in each of them."""

from __future__ import annotations

import ast
from typing import Any

from gradsight.detect.claims import Claims
from gradsight.detect.path import Path
from gradsight.model.events import Step
from gradsight.model.sites import Site
from gradsight.model.trace import Collected, ContainerMade, Stored
from gradsight.model.values import Seq


class SharedRows:
    """Remembers repeated lists, and what is put into one of their entries."""

    def __init__(self, path: Path, claims: Claims) -> None:
        self.path = path
        self.claims = claims
        self.rows: dict[int, tuple[Seq, Site]] = {}
        """The list that stands in every place, with the place where it was repeated."""

    def on_container_made(self, fact: ContainerMade) -> None:
        made = fact.container
        if fact.how != "repeat" or not isinstance(made, Seq) or len(made.items) < 2:
            return
        first = made.items[0]
        if isinstance(first, Seq) and first.kind == "list" and made.items[1] is first:
            self.rows[id(first)] = first, self.path.site(fact.node)

    def on_stored(self, fact: Stored) -> None:
        self.filled(fact.container, fact.site)

    def on_collected(self, fact: Collected) -> None:
        self.filled(fact.container, fact.site)

    def filled(self, container: Any, site: Site) -> None:
        """`losses[j].append(x)`: who picks one entry takes it for a list of its own."""
        row, made = self.rows.get(id(container), (None, None))
        call = site.node
        if row is not container or made is None or not isinstance(call, ast.Call):
            return
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Subscript):
            steps = [Step("written", site, "what is put in here is in every entry")]
            self.claims.add("alias-read-after-write", made, steps, how="rows-of-one")
