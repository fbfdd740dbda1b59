"""What is kept between two analyses of one file, so that an edit costs only what it touches.

*Record*: the outcome of one entry, with the global names it looked up.  A record holds as long as every unit that those
names rest on is still the same object: the units that bind them and, for units that are executed, what they looked up.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

from gradsight.interp.idle_edits import Grafted, remap
from gradsight.interp.recent_texts import RecentTexts
from gradsight.interp.syntax import remembered, set_on_self
from gradsight.interp.visible_text import names_bound
from gradsight.model.events import Event
from gradsight.model.report import Coverage, GapKind, UsedNames
from gradsight.model.sites import Unit
from gradsight.model.values import PythonModule

Gaps = dict[tuple[str, Unit, int, GapKind], int]


class Record:
    """The outcome of one entry."""

    __slots__ = (
        "asked", "cards", "context", "decided", "entered", "events", "executed", "gaps", "given", "spent", "unfinished", "units",
    )  # fmt: skip

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.asked: set[str] = set()
        self.executed: set[ast.AST] = set()
        self.gaps: Gaps = {}
        self.entered: set[ast.AST] = set()
        """Every function that was executed, be it in part."""
        self.decided: set[ast.AST] = set()
        """Every condition that a path has decided."""
        self.context = ""
        """What its results were taken for."""
        self.unfinished: set[ast.AST] = set()
        """The functions that were running when the budget was spent."""
        self.given = 0
        """The budget it had."""
        self.spent = 0
        self.units: frozenset[Unit | str] = frozenset()
        """Every unit that the outcome rests on; of a class that was only looked at, its outside."""
        self.cards: Any = None
        """What was seen of tensor names, once somebody has asked."""

    def is_same_within(self, budget: int, context: str) -> bool:
        """Whether the entry does the same with this budget: the one it had, or one that lasts as that one did."""
        return context == self.context and (budget == self.given or self.spent < min(budget, self.given))


class Outcome(NamedTuple):
    """What an analysis came to that was not stopped, and the texts that it was the outcome of."""

    units: list[Unit]
    lines: int
    records: list[Record]
    executed: set[ast.AST]
    wanted: dict[ast.AST, bool]


class Memory:
    """Units, namespace and records of the last analysis of one file."""

    def __init__(self) -> None:
        self.text = ""
        self.window: tuple[int, int] | None = None
        """The lines within which the last text had to be repaired to parse."""
        self.units: list[Unit] = []
        self.namespace: dict[str, Any] = {}
        self.script: Record | None = None
        self.unit_asked: dict[Unit, set[str]] = {}
        self.records: dict[tuple[Unit, str], Record] = {}
        self.uses: dict[str, set[str]] = {}
        """The modules of the workspace that something here rests on, and what was used of each."""
        self.used: tuple[Any, Callable[[], tuple[UsedNames, ...]]] | None = None
        """The same with the marks of the texts, and what they were made of."""
        self.age = 0
        """How often shared modules had been forgotten when it was last used."""
        self.coverage: Coverage | None = None
        self.modules: dict[str, PythonModule] = {}
        """Workspace modules that the last execution of the script imported."""
        self.outcome: Outcome | None = None
        """What the last analysis came to, as long as no text that it asked about says anything else."""
        self.recent = RecentTexts()
        self.retired: list[Unit] = []
        """Units that others have taken the place of, the last ones first: who takes an edit back brings one of them back."""
        self.retired_records: dict[tuple[Unit, str], list[Record]] = {}
        """Of each entry the records that were replaced; they hold once more when the units that they rest on are back."""

    def same_outcome(self, units: list[Unit]) -> Outcome | None:
        """What the last analysis came to, if these units are what it was about, and have their lengths."""
        last = self.outcome
        return last if last is not None and last.units == units and last.lines == lines_of(units) else None

    def begin(self) -> dict[tuple[Unit, str], Record]:
        """The records until now; those of the analysis that begins take their place."""
        previous, self.records, self.outcome = self.records, {}, None
        return previous

    def retire(self, previous: dict[tuple[Unit, str], Record]) -> None:
        """All entries were looked at: what was replaced is kept as long as it can hold once more."""
        for key, record in previous.items():
            if self.records.get(key) is not record:
                self.retired_records[key] = [record, *self.retired_records.get(key, ())][:MOST_RETIRED]
        known = {*self.units, *self.retired}
        self.retired_records = {
            key: records for key, records in self.retired_records.items() if key[0] in known
        }

    def retire_units(self, units: list[Unit], parsed: list[Unit]) -> None:
        """These were the units of the last text, and those are the ones of the next."""
        now = set(parsed)
        gone = [unit for unit in units if unit not in now and not unit.repaired]
        kept = [unit for unit in self.retired if unit not in now]
        self.retired = [*gone, *kept][:MOST_RETIRED]

    def holding(
        self,
        known: Record | None,
        key: tuple[Unit, str],
        budget: int,
        context: str,
        rests_unchanged: Callable[[Record], bool],
    ) -> Record | None:
        """What is remembered of an entry and holds: the last record of it, or one before."""
        records = [known] if known is not None else []
        for record in records + self.retired_records.get(key, []):
            if record.is_same_within(budget, context) and rests_unchanged(record):
                return record
        return None

    def take_over(self, grafts: list[Grafted]) -> None:
        """Units took over an edited text: what is known of them holds, but for what executed a method that does something else."""
        if not all(map(self.changes_nothing, grafts)):
            self.outcome = None
        changed = {method for graft in grafts for method in graft.changed}
        if changed:
            self.records = {
                key: record for key, record in self.records.items() if record.entered.isdisjoint(changed)
            }
            self.retired_records = {
                key: [record for record in records if record.entered.isdisjoint(changed)]
                for key, records in self.retired_records.items()
            }
            if self.script is not None and not self.script.entered.isdisjoint(changed):
                self.script = None
        units = {graft.unit for graft in grafts}
        known = {*self.records.values(), *([self.script] if self.script is not None else [])}
        known |= {record for records in self.retired_records.values() for record in records}
        for record in known.union(self.outcome.records if self.outcome is not None else ()):
            if any(unit in units for _, unit, _, _ in record.gaps):
                record.gaps = remap(record.gaps, grafts)
            if record is self.script or record.units & units:
                record.cards = None

    def changes_nothing(self, graft: Grafted) -> bool:
        """Whether everything is worth as much work as before; what a library drives is, by each of its lines."""
        if not graft.is_silent or any(steady(before) != steady(after) for before, after in graft.heights):
            return False
        return not graft.delta or not any(record.context == "driver" for record in self.records.values())


MOST_RETIRED = 4
"""So many units, and records of each entry, are kept that others have taken the place of."""
COARSEST_LINES = 8
STEADY_BITS = 4
"""Numbers of one length in bits are rounded to eight."""
CLASS_BRINGING = (ast.ClassDef, ast.Import, ast.ImportFrom, ast.If, ast.Try)


def only_defines(unit: Unit) -> bool:
    """Whether executing the unit does nothing but bind a function or class (or is a bare constant)."""
    for statement in unit.tree:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and not statement.decorator_list:
            continue
        if isinstance(statement, ast.ClassDef) and not statement.decorator_list and not statement.keywords:
            continue
        return False
    return True


def rests_on(
    asked: set[str], binders: dict[str, list[Unit]], unit_asked: dict[Unit, set[str]]
) -> frozenset[Unit | str]:
    """All units that the values of these names depend on."""
    found: set[Unit | str] = set()
    todo = list(asked)
    seen: set[str] = set(todo)
    while todo:
        name = todo.pop()
        for unit in binders.get(name, ()):
            part = outside_of(unit) if name == EVERY_CLASS else unit
            if part not in found:
                found.add(part)
                for further in unit_asked.get(unit, ()):
                    if further not in seen:
                        seen.add(further)
                        todo.append(further)
    return frozenset(found)


def outside_of(unit: Unit) -> Unit | str:
    """What can be told of a class without executing its methods, which they decide by the attributes they set on `self`;
    the whole unit where it is more than classes.
    """
    if not all(isinstance(statement, ast.ClassDef) for statement in unit.tree):
        return unit
    return "\n".join(remembered(statement, "outside", _outside) for statement in unit.tree)


def _outside(cls: ast.AST) -> str:
    assert isinstance(cls, ast.ClassDef)
    told = [cls.name, *map(ast.dump, [*cls.bases, *cls.keywords, *cls.decorator_list])]
    told += sorted(remembered(cls, "set on self", set_on_self))
    for statement in cls.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            told += [statement.name, *map(ast.dump, statement.decorator_list)]
        else:
            told.append(ast.dump(statement))
    return "\n".join(told)


EVERY_CLASS = "<every class>"
"""Asked for by an entry that looked at all classes of the file from outside: it rests on whatever brings one."""


def binders_of(units: list[Unit]) -> dict[str, list[Unit]]:
    """The units that bind each name, in order."""
    binders: dict[str, list[Unit]] = {}
    for unit in units:
        for name in names_bound(unit):
            binders.setdefault(name, []).append(unit)
        if any(isinstance(statement, CLASS_BRINGING) for statement in unit.tree):
            binders.setdefault(EVERY_CLASS, []).append(unit)
    return binders


def lines_of(units: list[Unit]) -> int:
    """How long a file is, by which its budgets are given."""
    return steady(sum(unit.height for unit in units))


def steady(number: int) -> int:
    """The number rounded up to one of a few: a line more or less seldom changes a budget, and what was done within it holds."""
    step = max(COARSEST_LINES, 1 << max(0, number.bit_length() - STEADY_BITS))
    return -(-number // step) * step


def put_in_order(namespace: dict[str, Any], units: list[Unit]) -> None:
    """Leave a namespace in the order in which the file binds its names, as a fresh execution does."""
    order: dict[str, Any] = {}
    for unit in units:
        for name in sorted(names_bound(unit)):
            if name in namespace and name not in order:
                order[name] = namespace[name]
    for name, value in namespace.items():
        order.setdefault(name, value)
    namespace.clear()
    namespace.update(order)


def is_bound_as_before(name: str, fresh: list[Unit], binders: dict[str, list[Unit]], memory: Memory) -> bool:
    """Whether the unit that binds a name last is new, or bound it last before too; then its value is known."""
    now = binders.get(name)
    if not now or now[-1] in fresh:
        return True
    before = [unit for unit in memory.units if name in names_bound(unit)]
    return bool(before) and before[-1] is now[-1]
