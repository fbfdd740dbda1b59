"""How much of a file was analysed: what limits of work and faults of ours cost, as gaps and as a count of functions.

A function is *analysed* when it was executed, or when nothing in it, nor in what it calls, can write, cut, step or
differentiate.
"""

from __future__ import annotations

import ast
import logging
import os
from collections.abc import Iterable

from gradsight.interp.memory import Memory, Outcome, Record
from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.entry_kinds import functions_in
from gradsight.model.report import Coverage
from gradsight.model.sites import Site, Unit

log = logging.getLogger(__name__)
SPENT = "the limit of work was reached here: what follows was not analysed"
PASSED_BY = "this branch was not analysed: the limit of work was reached"
LEFT_OUT = "was not analysed: the limit of work for this file was reached"
FAILED = "was not analysed: the object it belongs to could not be made"


def note_spent_budget(record: Record, machine: Machine) -> None:
    """The first path of an entry ran out of budget: where it stopped, and which functions were running."""
    site = machine.ended_at
    if not machine.ended_early or site is None:
        return
    record.gaps[(SPENT, site.unit, int(getattr(site.node, "lineno", 0)), "budget")] = 1
    around: Site | None = site
    while around is not None:
        if around.frame.function is not None:
            record.unfinished.add(around.frame.function.node)
        around = around.frame.call_site


def note_left_out(record: Record, places: Iterable[tuple[Unit, ast.AST]]) -> None:
    """Branches that write, cut or train, and that no path was left for."""
    for unit, node in places:
        record.gaps[(PASSED_BY, unit, int(getattr(node, "lineno", 0)), "budget")] = 1


def note_fault(record: Record, error: Exception, unit: Unit, name: str) -> None:
    """A fault of ours ended an entry: the others are executed all the same."""
    if os.environ.get("GRADSIGHT_STRICT"):
        raise error
    log.error("the machine failed on %s", unit.path, exc_info=error)
    last = name.rpartition(".")[2].rstrip("+")
    lines = [
        int(getattr(node, "lineno", 0)) for node in functions_in(unit) if getattr(node, "name", "") == last
    ]
    what = f"`{name}`" if lines else "the top level of the file"
    record.gaps[(f"{type(error).__name__} in {what}", unit, lines[0] if lines else 0, "internal")] = 1


def conclude(
    memory: Memory, lines: int, records: list[Record], executed: set[ast.AST], wanted: dict[ast.AST, bool]
) -> list[Record]:
    """All entries were looked at: what came of it is kept, and given with what was left out."""
    memory.outcome = Outcome(memory.units, lines, records, executed, wanted)
    return concluded(memory, memory.outcome)


def concluded(memory: Memory, outcome: Outcome) -> list[Record]:
    """The records of an outcome, and what was left out."""
    remainder, memory.coverage = left_out(outcome.units, outcome.executed, outcome.wanted, outcome.records)
    return [*outcome.records, remainder]


def left_out(
    units: Iterable[Unit], executed: set[ast.AST], wanted: dict[ast.AST, bool], records: Iterable[Record]
) -> tuple[Record, Coverage]:
    """Functions that were wanted and not executed: their gaps, and the count of all.

    `wanted` tells of a function whether an entry was made for it; if not, no work was left for one.
    """
    record = Record()
    unfinished: set[ast.AST] = set().union(*(one.unfinished for one in records))
    functions = missing = 0
    for unit in units:
        for node in functions_in(unit):
            functions += 1
            if node in executed or (node not in wanted and node not in unfinished):
                continue
            missing += 1
            if node not in unfinished:
                reason = FAILED if wanted[node] else LEFT_OUT
                name = getattr(node, "name", "")
                record.gaps[(f"`{name}` {reason}", unit, int(getattr(node, "lineno", 0)), "budget")] = 1
    return record, Coverage(functions, missing)
