"""The whole machine, and the entries through which it is started.

*Entry*: something that is executed by itself: a module's top level, or a function that nothing else executed.
*Paths* of an entry: first the plain one, then one for each branch arm that has not been seen yet, within a budget.
"""

from __future__ import annotations

import ast
from contextlib import suppress

from gradsight.interp.library_places import DRIVER
from gradsight.interp.path_state import PathEnded, RaisedError
from gradsight.interp.paths.entry_floor import EntryFloor
from gradsight.model.sites import Frame, Site, Unit
from gradsight.model.values import Function, Scope, Value

NESTED_TOO_DEEPLY = "this is nested too deeply to be analysed to its end"


class UnitRunner(EntryFloor):
    """One path through one entry."""

    def run_units(self, units: list[Unit], namespace: dict[str, Value]) -> None:
        """Execute a module's top level."""
        scope = Scope(namespace, None)
        frame: Frame | None = None
        for unit in units:
            if frame is None:
                frame = Frame("<module>", unit, namespace, scope, 0, self.path.numbering)
            frame.unit = unit
            self.path.frame = frame
            self.execute_unit(unit)

    def execute_unit(self, unit: Unit) -> None:
        """Execute some top-level statements; what is too deep for us costs these alone."""
        frame = self.path.frame
        try:
            self.language.execute(unit.tree)
        except RecursionError:
            self.path.frame = frame
            frame.guards, frame.loops = (), ()
            self.path.gap(NESTED_TOO_DEEPLY, unit.tree[0] if unit.tree else None, kind="budget")

    def finish(self) -> None:
        """The path is over: what was made to run is run, then look back at the whole of it."""
        for made in self.path.startable if not self.path.ended_early else ():
            driver, _ = made.cls.find(DRIVER)
            if isinstance(driver, Function):
                self.path.frame = made.site.frame
                with suppress(PathEnded, RaisedError):
                    self.language.call_function(driver, [made], {}, made.site.node)
        self.path.listener.finish()

    def place_in(self, function: Function, node: ast.AST) -> Site:
        """A place inside a function that is not running."""
        return Site(node, Frame(function.name, function.unit, {}, function.scope, 1, self.path.numbering))
