"""Which functions of a file may write in place to what they did not make, and who leads to them.

Such a write, `hidden *= 2` on what the caller gave, is the only thing by which a forward that does nothing itself can come to harm.
"""

from __future__ import annotations

import ast

from gradsight.interp.paths.call_graph import WRITE, CallGraph, summary_of
from gradsight.interp.paths.entry_kinds import functions_in
from gradsight.interp.paths.made_here import writes_only_to_made
from gradsight.interp.syntax import remembered
from gradsight.interp.syntax_parts import sorted_parts
from gradsight.model.sites import Unit
from gradsight.ops.table import Table


class Writers:
    """Which functions of a file write to what they did not make, and from which of its units they are reached."""

    def __init__(self, binders: dict[str, list[Unit]], calls: CallGraph, table: Table) -> None:
        self.binders, self.calls, self.table = binders, calls, table
        self.known: dict[Unit, bool] = {}
        writing = {node for named in calls.by_name.values() for node in named if self.is_writer(node)}
        self.is_quiet = not writing and not any(map(makes_writing_layer, calls.by_name.get("__init__", ())))
        self.writing = writing

    def is_writer(self, function: ast.AST) -> bool:
        if WRITE not in summary_of(function).reasons:
            return False
        relied = writes_only_to_made(function, self.table)
        return relied is None or not relied.isdisjoint(self.calls.by_name)

    def may_be_met(self, unit: Unit, function: ast.AST) -> bool:
        """Whether a function of a unit may lead to such a write: by its calls, or by the forward of a module that its unit speaks of."""
        if self.is_quiet:
            return False
        if unit not in self.known:
            self.known[unit] = self.is_met_by_modules(unit)
        return self.known[unit] or not self.writing.isdisjoint(self.calls.led_to([function]))

    def is_met_by_modules(self, unit: Unit) -> bool:
        named = [node for one in self.spoken_of(unit) for node in functions_in(one)]
        if any(getattr(node, "name", "") == "__init__" and makes_writing_layer(node) for node in named):
            return True
        forwards = [node for node in named if getattr(node, "name", "") == "forward"]
        return not self.writing.isdisjoint(self.calls.led_to(forwards))

    def spoken_of(self, unit: Unit) -> set[Unit]:
        """The units that bind what a unit names, what those name, and so on."""
        seen, todo = {unit}, [unit]
        while todo:
            for statement in todo.pop().tree:
                for name in remembered(statement, "names spoken", names_spoken):
                    for one in self.binders.get(name, ()):
                        if one not in seen:
                            seen.add(one)
                            todo.append(one)
        return seen


def names_spoken(statement: ast.AST) -> frozenset[str]:
    """The names that a text reads, and its texts that may be names: `"Encoder"`."""
    parts = sorted_parts(statement)
    texts = {one.value for one in parts.get(ast.Constant, ()) if isinstance(one.value, str)}
    return frozenset(
        {name.id for name in parts.get(ast.Name, ())} | {one for one in texts if one.isidentifier()}
    )


def makes_writing_layer(function: ast.AST) -> bool:
    """Whether an `__init__` makes a layer that writes: `nn.ReLU(inplace=True)`."""
    return any(
        word.arg in ("inplace", "out") and not (isinstance(word.value, ast.Constant) and not word.value.value)
        for call in sorted_parts(function).get(ast.Call, ())
        for word in call.keywords
    )
