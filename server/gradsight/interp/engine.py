"""The whole machine, and the entries through which it is started.

*Entry*: something that is executed by itself: a module's top level, or a function that nothing else executed.
*Paths* of an entry: first the plain one, then one for each branch arm that has not been seen yet, within a budget.
"""

from __future__ import annotations

from typing import Any

from gradsight.interp.machine import Program
from gradsight.interp.protocol import Protocol
from gradsight.model.sites import Frame, Unit
from gradsight.model.tensors import Maybe, Tensor
from gradsight.model.values import PythonModule, Scope, Unknown, tensors_in


class Machine(Protocol):
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
        self.all_clears = {}
        self.cut_leaves = {}
        self.declared = {}
        self.terms = []
        self.normalised = []
        self.totals = []
        self.replacements = []
        self.attribute_sites = {}
        self.written_without_grad = []
        self.recorded_writes = []
        self.stored_graphs = []
        self.same_tensor = []
        self.keeps = {}
        self.entry_epochs = {}
        self.derivatives = []
        self.class_functions = []
        self.retired = set()
        self.twins = {}
        self.named_methods = []
        self.stored_somewhere = set()
        self.results = {}
        self.exits = {}
        self.class_reads = {}
        self.made_at = {}
        self.meetings = []
        self.averaged = {}
        self.shared_data = {}
        self.records = {}
        self.adds_to_itself = {}
        self.tensor_hooks = []
        self.made_in_forward = []
        self.fed = {}
        self.starved_since = {}
        self.starved = []
        self.used = set()
        self.updates = []
        self.escapes = []
        self.scaled_nodes = {}
        self.still_moving = {}
        self.stepped_live = set()

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


__all__ = ["Machine", "Maybe", "Tensor", "Unknown", "tensors_in"]
