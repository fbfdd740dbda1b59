"""The whole machine, and the entries through which it is started.

*Entry*: something that is executed by itself: a module's top level, or a function that nothing else executed.
*Paths* of an entry: first the plain one, then one for each branch arm that has not been seen yet, within a budget.
"""

from __future__ import annotations

import ast
from typing import Any

from gradsight.interp.machine import Program
from gradsight.interp.transforms import Transforms
from gradsight.model.sites import Frame, Site, Unit
from gradsight.model.tensors import Maybe, Tensor
from gradsight.model.values import Function, PythonModule, Scope, Unknown, tensors_in


class Machine(Transforms):
    """One path through one entry."""

    def __init__(self, program: Program, module: PythonModule, script: list[bool], budget: int) -> None:
        super().__init__(program, module, script, budget)
        self.expressions = self.expression_table()
        self.simple_statements = self.simple_table()
        self.compound_statements = self.compound_table()
        self.private_memo = {}
        self.retaining = []
        self.gradient_ticks = {}
        self.live_gradient_ticks = {}
        self.cleared_ticks = {}
        self.refused_writes = set()
        self.entry_epochs = {}
        self.class_functions = []
        self.named_methods = []
        self.stored_somewhere = set()
        self.results = {}
        self.exits = {}
        self.escapes = []

    def run_units(self, units: list[Unit], namespace: dict[str, Any]) -> None:
        """Execute a module's top level."""
        scope = Scope(namespace, None)
        frame: Frame | None = None
        for unit in units:
            if frame is None:
                frame = Frame("<module>", unit, namespace, scope, 0, self.numbering)
            frame.unit = unit
            self.frame = frame
            self.execute(unit.tree)

    def finish(self) -> None:
        """The path is over: look back at the whole of it."""
        self.listener.finish()

    def place_in(self, function: Function, node: ast.AST) -> Site:
        """A place inside a function that is not running."""
        return Site(node, Frame(function.name, function.unit, {}, function.scope, 1, self.numbering))


__all__ = ["Machine", "Maybe", "Tensor", "Unknown", "tensors_in"]
