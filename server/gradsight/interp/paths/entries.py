"""Where execution starts: the script itself, then functions and modules that the script did not reach.

A function that nothing calls is executed with unknown arguments.  In the forward of a module (and in loss functions) an argument
used as a tensor is taken to carry a graph, and backward to be called on the result: the one assumption, and the event says it.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from functools import cached_property

from gradsight.interp.memory import (
    Memory,
    Record,
    binders_of,
    is_bound_as_before,
    lines_of,
    only_defines,
    put_in_order,
    rests_on,
    steady,
)
from gradsight.interp.path_state import PathEnded, Program, RaisedError, Unwanted
from gradsight.interp.paths.arguments import arguments_for, given_to_constructor
from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.assumed_backward import differentiate, still_read
from gradsight.interp.paths.call_graph import REGISTER, TRAIN, summary_of
from gradsight.interp.paths.coverage import conclude, concluded, note_fault, note_left_out, note_spent_budget
from gradsight.interp.paths.default_options import methods_with_options
from gradsight.interp.paths.differentiated import differentiated_in
from gradsight.interp.paths.drivers import DRIVER_PATHS, called_by_library, driver_budget, driver_of
from gradsight.interp.paths.entry_kinds import (
    call_graph_of,
    is_loss_name,
    is_module_class,
    training_around,
    trains_itself,
    with_inner_classes,
)
from gradsight.interp.paths.idle_functions import is_idle
from gradsight.interp.paths.inherited import inherited_training
from gradsight.interp.paths.itinerary import MOST_PATHS, Itinerary, PathPlan
from gradsight.interp.paths.outside_writes import Writers
from gradsight.interp.paths.program_starts import names_started
from gradsight.interp.paths.receivers import forget_state, made_by_file, make_receiver
from gradsight.interp.paths.second_try import SecondTry, trained_in
from gradsight.interp.paths.shared_starts import SharedStart
from gradsight.interp.paths.unit_runner import NESTED_TOO_DEEPLY
from gradsight.interp.paths.unused_defaults import Giving
from gradsight.interp.visible_text import names_bound
from gradsight.model.sites import Frame, Unit
from gradsight.model.source import Source
from gradsight.model.trace import MethodReturned
from gradsight.model.values import ClassValue, Function, Instance, PythonModule, Scope, Value

SCRIPT_BUDGET = 40_000
SHARED_BUDGET = 12_000
PER_LINE = 40
SHARED_PER_LINE = 40
ENTRY_BUDGET = 1_500
ENTRY_PER_LINE = 30
MAKING = 3
"""An `__init__` costs more than its lines tell: it makes the parts, too."""
TRAINING = 3
MAKING_SHARE = 2
"""The part of an entry's budget that the object it is executed on may cost on each path."""
FAIR_SHARES = 12
"""How many times its share of what is left an entry may spend."""
ORDER = {"forward": 0, "__init__": 2}
"""When the methods of a class come, those of other names in between."""
MOST_DETOURS = 6
"""How many paths that end in an exception before anything is trained are made up for by others."""


class Explorer:
    """Executes entries and gathers their events.

    The script has a budget of its own; the functions and classes it did not reach share one that grows with the length
    of the file, so that the cost of an analysis stays linear.  What is remembered of an earlier analysis is used where
    nothing it rests on has changed; the outcome is the same as if everything were executed.
    """

    def __init__(self, program: Program, path: str, memory: Memory, units: list[Unit]) -> None:
        self.program = program
        self.path = path
        self.memory = memory
        self.units = units
        self.alive = set(units)
        self.binders = binders_of(units)
        self.namespace = memory.namespace
        self.executed: set[ast.AST] = set()
        self.records: list[Record] = []
        self.lines = lines_of(units)
        self.shared = SHARED_BUDGET + SHARED_PER_LINE * self.lines
        self.calls = call_graph_of(units)
        # Functions that may still want a part of the shared budget, and what a library is given to begin with.
        self.waiting, self.starts = sum(map(len, self.calls.by_name.values())), names_started(units)
        self.differentiated: set[ast.AST] = set()
        """Functions whose results modules, losses or other such functions use."""
        self.running: tuple[Unit, str] = (units[0], "")
        """The entry that is explored: the unit it stands in, and its name; the script before any other."""
        self.wanted: dict[ast.AST, bool] = {}
        """Functions worth executing by themselves, and whether there was work left for it."""
        self.over: list[Machine] = []
        """Paths of the entry that is explored, but for those of the script, whose names are kept: what they made may not be mixed up."""

    def run(self) -> list[Record]:
        """The records of all entries, in order."""
        previous = self.memory.begin()
        try:
            found = self.run_all(previous)
            self.memory.retire(previous)
            return found
        except Unwanted:
            # What was not looked at yet stays for the next analysis, which finds out whether it holds.
            if not self.has_run_script:
                self.memory.script = None
            self.memory.units = self.units
            self.memory.records = {**previous, **self.memory.records}
            raise

    has_run_script = False

    def run_all(self, previous: dict[tuple[Unit, str], Record]) -> list[Record]:
        memory = self.memory
        if not self.script_still_holds():
            self.execute_script()
        self.has_run_script = True
        script = memory.script
        assert script is not None
        memory.units = self.units
        self.keep(script)
        classes, functions = self.definitions()
        self.note_differentiated(classes, functions)
        for cls in classes:
            self.give_up_if_unwanted()
            self.drive(cls, previous)
        # What is called by others comes later: it is executed from its callers, with their values, if they reach it.
        for turn in (1, 2, 3):
            self.turn = turn
            for cls in classes:
                self.give_up_if_unwanted()
                if turn == 2:
                    self.run_inherited(cls, previous)
                self.run_class(cls, previous)
            for function in functions:
                self.give_up_if_unwanted()
                self.run_function(function, previous)
        self.run_with_options(classes, previous)
        return conclude(memory, self.lines, self.records, self.executed, self.wanted)

    turn = 0
    """First what nothing calls and all forwards, then helpers that nobody has reached, last forwards that do nothing themselves."""

    def turn_of(self, node: ast.AST, is_called: bool, context: str) -> int:
        if context != "function" and not self.calls.reasons_for(node):
            return 3
        return 2 if is_called else 1

    def definitions(self) -> tuple[list[ClassValue], list[Function]]:
        """The classes and functions that the file binds to names; a class that stands in another one is bound there."""
        values = list(self.namespace.values())
        classes = [value for value in values if isinstance(value, ClassValue) and value.unit in self.alive]
        self.names_of_classes = with_inner_classes(classes)
        functions = [value for value in values if isinstance(value, Function)]
        return [*self.names_of_classes], [one for one in functions if one.defined().unit in self.alive]

    def note_differentiated(self, classes: list[ClassValue], functions: list[Function]) -> None:
        """Find what is part of a forward or a loss, and all names that anything calls."""
        self.differentiated = differentiated_in(classes, functions, self.calls)
        self.called_names = self.calls.names_called()

    called_names: set[str] = set()
    trains = False  # Whether the entry that is explored differentiates or steps, itself or by what it calls.
    names_of_classes: dict[ClassValue, str] = {}

    def give_up_if_unwanted(self) -> None:
        if self.program.is_unwanted():
            raise Unwanted

    def keep(self, record: Record) -> None:
        self.records.append(record)
        # What was not followed to its end is executed by itself, if it is worth it.
        self.executed |= record.executed - record.unfinished

    # -- the script --------------------------------------------------------------------------------------------------

    def script_still_holds(self) -> bool:
        """Whether the last execution of the top level is still true; changed definitions it never used are bound anew."""
        memory = self.memory
        script = memory.script
        if script is None:
            return False
        before = set(memory.units)
        gone = [unit for unit in memory.units if unit not in self.alive]
        fresh = [unit for unit in self.units if unit not in before]
        kept_order = [unit for unit in memory.units if unit in self.alive] == [
            unit for unit in self.units if unit in before
        ]
        if not kept_order:
            return False
        for unit in [*gone, *fresh]:
            if not only_defines(unit) or names_bound(unit) & script.asked:
                return False
        names = {name for unit in [*gone, *fresh] for name in names_bound(unit)}
        if not all(is_bound_as_before(name, fresh, self.binders, memory) for name in names):
            return False
        for unit in gone:
            memory.unit_asked.pop(unit, None)
            for name in names_bound(unit):
                if name not in self.binders:
                    self.namespace.pop(name, None)
        script.gaps = {
            gap: count
            for gap, count in script.gaps.items()
            if gap[1] in self.alive or gap[1].path != self.path
        }
        if fresh:
            machine = Machine(self.program, PythonModule("__main__", self.path), [], SCRIPT_BUDGET)
            machine.entry.adopt(memory.modules)
            for unit in fresh:
                machine.asked = set()
                hidden = {
                    name: self.namespace[name]
                    for name in names_bound(unit)
                    if self.binders[name][-1] is not unit and name in self.namespace
                }
                machine.entry.run_units([unit], self.namespace)
                self.namespace.update(hidden)
                memory.unit_asked[unit] = machine.asked
                script.asked |= machine.asked
            script.gaps.update(machine.gaps)
            put_in_order(self.namespace, self.units)
        return True

    def execute_script(self) -> None:
        memory = self.memory
        memory.namespace = self.namespace = {}
        memory.unit_asked = {}
        memory.modules = {}
        record = Record()
        first = True

        def body(machine: Machine) -> None:
            nonlocal first
            namespace = self.namespace if first else {}
            keep = memory.unit_asked if first else None
            if first:
                memory.modules = machine.entry.modules
            first = False
            machine.entry.run_script(self.units, namespace, keep)

        self.explore(record, body, SCRIPT_BUDGET + PER_LINE * self.lines, MOST_PATHS)
        put_in_order(self.namespace, self.units)
        memory.script = record

    # -- paths -------------------------------------------------------------------------------------------------------

    def explore(
        self,
        record: Record,
        body: Callable[[Machine], None],
        budget: int,
        most_paths: int,
        context: str = "script",
        start: SharedStart | None = None,
    ) -> None:
        """Run one entry along its paths."""
        record.context, record.given, given = context, budget, budget
        ways = Itinerary(most_paths, "" if context in ("script", "driver") else self.path)
        together = self.program.audience.gather()
        plan: PathPlan | None = PathPlan([])
        detours, has_optional = 0, False
        """Whether arguments may be left out: the second path is the one without them."""
        module = PythonModule("__main__", self.path)
        start = start or SharedStart([])
        second = SecondTry(self.trains or context in ("script", "driver"))
        while budget > 0 and (plan is not None or (ways.paths == 1 and has_optional)):
            leaves_out = ways.paths == 1 and has_optional
            if leaves_out:
                has_optional = False
            way = PathPlan([]) if leaves_out or plan is None else plan
            known = start.begin(way, budget, given // MAKING_SHARE)
            machine = known or Machine(self.program, module, way.choices, budget)
            machine.context = context
            machine.leaves_out_optional = leaves_out
            machine.passes_by, machine.wishes = way.passes_by, way.wishes
            machine.making_budget = given // MAKING_SHARE
            machine.language.bounds_models = second.is_on
            if context != "script" and known is None:
                machine.isolated = True
                machine.entry.adopt(self.memory.modules)
                self.over.append(machine)
            ways.paths += 1
            refused = raised = False
            try:
                body(machine)
                machine.entry.finish()
            except (PathEnded, RaisedError) as ended:
                raised = isinstance(ended, RaisedError)
                refused = raised and not machine.log and detours < MOST_DETOURS
                with contextlib.suppress(PathEnded, RaisedError):
                    machine.entry.finish()
            except RecursionError:
                machine.gaps[(NESTED_TOO_DEEPLY, self.running[0], 1, "budget")] = 1
            except Unwanted:
                raise
            except Exception as error:
                note_fault(record, error, *self.running)
                budget = 0
                continue
            self.path_ended(machine)
            second.note(machine, raised)
            budget = machine.budget
            record.executed |= machine.executed
            record.entered |= machine.entered
            record.decided.update(node for node, _ in machine.arms)
            record.asked |= machine.asked
            if ways.paths == 1:
                record.gaps = dict(machine.gaps)
                note_spent_budget(record, machine)
            together.add(machine.listener, machine.arms, not machine.passes_by)
            if ways.paths == 1 and second.is_wanted(machine):
                budget, ways.paths = given, 0
                start.kept.clear()
                continue
            if leaves_out or plan is None:
                continue
            has_optional = machine.has_optional_arguments
            if refused:
                detours += 1
                ways.paths -= 1
            is_idle = context == "script" and not machine.has_made_anything()
            ways.learn(plan, machine.decisions, refused, raised, self.path if is_idle else "")
            plan = ways.next_plan(together.needs_turns())
        left = list(ways.left_out())
        note_left_out(record, left)
        if context == "script":
            # Each of them is executed by itself, too.
            record.executed -= training_around([one for one in left if one[0] in self.alive])
            if not second.has_come_far:
                record.executed -= trained_in(self.calls)
            if second.only_shows:
                record.executed &= second.called_quietly
        record.events = together.conclusions()
        record.spent = given - max(0, budget)
        for machine in self.over:
            machine.dissolve()
        self.over.clear()

    def path_ended(self, machine: Machine) -> None:
        """Hook: a path was executed."""

    # -- functions and classes that the script did not reach ---------------------------------------------------------

    def wants(self, unit: Unit, node: ast.AST, context: str) -> bool:
        """Whether a function is worth executing by itself."""
        if node in self.executed:
            return False
        reasons = self.calls.reasons_for(node)
        if context == "function":
            wanted = not reasons.isdisjoint({TRAIN, REGISTER})
        else:
            wanted = bool(reasons or self.writers.may_be_met(unit, node)) and not is_idle(node, self.calls)
        if wanted:
            self.wanted[node] = self.shared > 0
        return wanted and self.shared > 0

    @cached_property
    def giving(self) -> Giving:
        """What the file gives by name, in whatever makes its classes."""
        return Giving(self.units)

    @cached_property
    def writers(self) -> Writers:
        """What writes to what others gave it, another forward perhaps."""
        return Writers(self.binders, self.calls, self.program.table)

    def budget_for(self, node: ast.stmt | ast.expr) -> int:
        lines = steady(int((node.end_lineno or node.lineno) - node.lineno))
        fair = max(ENTRY_BUDGET, steady(FAIR_SHARES * self.shared // max(1, self.waiting)))
        share = ENTRY_BUDGET + ENTRY_PER_LINE * lines
        # A loop that trains is executed for some rounds, with all that they call.
        return min(steady(self.shared), fair, TRAINING * share if summary_of(node).steps else share)

    def context_of(self, function: Function, cls: ClassValue | None) -> str:
        if cls is not None and is_module_class(cls) and function.name == "forward":
            # A trainer may be a module that trains when it is called.
            return "function" if trains_itself(function.node) else "forward"
        if function.node in self.differentiated and function.name != "__init__":
            return "loss" if is_loss_name(function.name) else "forward"
        return "function"

    def run_function(self, function: Function, previous: dict[tuple[Unit, str], Record]) -> None:
        defined = function.defined()
        context = self.context_of(defined, None)
        if isinstance(defined.node, ast.Lambda):
            return
        is_called = defined.name in self.called_names
        if self.turn not in (0, self.turn_of(defined.node, is_called, context)):
            return
        if not self.wants(defined.unit, defined.node, context):
            return

        def body(machine: Machine) -> None:
            self.call_alone(machine, function, [], context)

        start = defined.name in self.starts and TRAIN in self.calls.reasons_for(defined.node)
        budget = SCRIPT_BUDGET if start else self.budget_for(defined.node)
        self.trains = context == "function" and TRAIN in self.calls.reasons_for(defined.node)
        self.run_entry((defined.unit, defined.name), previous, body, budget, context)

    def run_class(self, cls: ClassValue, previous: dict[tuple[Unit, str], Record]) -> None:
        """Execute the methods whose turn it is."""
        if cls.kind == "autograd" or cls.node is None or cls.unit is None:
            return
        members = [value for value in cls.namespace.values() if isinstance(value, Function)]
        # A forward executes most of the others, and every method needs what `__init__` makes.
        members.sort(key=lambda member: ORDER.get(member.defined().name, 1))
        init = cls.namespace.get("__init__")
        # Layers that it puts away somewhere are asked for where they are applied.
        puts_away = isinstance(init, Function) and REGISTER in summary_of(init.defined().node).reasons
        pieces = [(place, piece) for member in members for place, piece in enumerate(member.pieces())]
        for place, method in pieces:
            defined = method.defined()
            if isinstance(defined.node, ast.Lambda) or defined.unit is not cls.unit:
                continue
            context = self.context_of(defined, cls)
            is_called = defined.name in self.called_names and defined.name not in ("__init__", "forward")
            if self.turn not in (0, self.turn_of(defined.node, is_called, context)):
                continue
            is_asked = puts_away and defined.name == "forward" and defined.node not in self.executed
            if not self.wants(defined.unit, defined.node, context) and not (is_asked and self.shared > 0):
                continue
            name = f"{self.names_of_classes[cls]}.{defined.name}{'+' * place}"
            key = (cls.unit, " ".join([name, *sorted(self.giving.instead_of_defaults(cls))]))
            self.run_method(cls, method, key, previous, context)

    def run_inherited(self, cls: ClassValue, previous: dict[tuple[Unit, str], Record]) -> None:
        """Execute what trains in the bases of a class with an object of the class, unless that was done."""
        if cls.kind != "plain" or cls.unit is None or self.shared <= 0:
            return
        for method, filled_in in inherited_training(cls):
            defined = method.defined()
            if defined.node not in self.executed or not filled_in <= self.executed:
                self.waiting += 1
                self.run_method(cls, method, (cls.unit, f"{cls.name}.{defined.name}"), previous, "function")

    def run_method(
        self,
        cls: ClassValue,
        method: Function,
        key: tuple[Unit, str],
        previous: dict[tuple[Unit, str], Record],
        context: str,
    ) -> None:
        start = SharedStart([self.namespace, *self.names_of_classes])

        def body(machine: Machine) -> None:
            self.call_method_alone(machine, cls, method, context, start)

        budget = self.budget_for(method.defined().node)
        init, _ = cls.find("__init__")
        if isinstance(init, Function) and method.defined().name != "__init__":
            budget = min(steady(self.shared), budget + MAKING * self.budget_for(init.defined().node))
        self.trains = context == "function" and TRAIN in self.calls.reasons_for(method.defined().node)
        self.run_entry(key, previous, body, budget, context, start=start)

    def run_with_options(self, classes: list[ClassValue], previous: dict[tuple[Unit, str], Record]) -> None:
        """Execute forwards again whose arms only objects with other options than the defaults go into."""
        decided = {node for record in self.records for node in record.decided}
        for cls, method, options in methods_with_options(classes, decided):
            self.give_up_if_unwanted()
            context, name = self.context_of(method.defined(), cls), method.defined().name
            if cls.unit is not None and context != "function" and self.shared > 0:
                self.options, self.waiting = options, self.waiting + 1
                key = (cls.unit, " ".join([f"{self.names_of_classes[cls]}.{name} with", *options]))
                self.run_method(cls, method, key, previous, context)
                self.options = {}

    options: dict[str, Value] = {}  # What an object is made with beside what the file gives it.

    def drive(self, cls: ClassValue, previous: dict[tuple[Unit, str], Record]) -> None:
        """Start a class of a library as the library does, unless all that the library calls was executed."""
        driver = driver_of(cls)
        if driver is None or cls.unit is None or called_by_library(cls) <= self.executed:
            return

        def body(machine: Machine) -> None:
            assert cls.unit is not None
            machine.frame = self.outer_frame(machine, cls.unit)
            receiver = made_by_file(machine, cls, self.namespace) or make_receiver(machine, cls)
            machine.frame = self.outer_frame(machine, cls.unit)
            machine.language.call_function(driver, [receiver], {}, cls.node or ast.Pass())

        shared = self.shared
        key = (cls.unit, f"{cls.name}.{driver.name}")
        self.run_entry(key, previous, body, driver_budget(cls), "driver", DRIVER_PATHS)
        self.shared = shared

    def run_entry(
        self,
        key: tuple[Unit, str],
        previous: dict[tuple[Unit, str], Record],
        body: Callable[[Machine], None],
        budget: int,
        context: str,
        most_paths: int = 4,
        start: SharedStart | None = None,
    ) -> None:
        """Execute one entry, or take what is remembered of it."""
        record = self.memory.holding(previous.get(key), key, budget, context, self.rests_unchanged)
        if record is None:
            record = Record()
            self.running = key
            self.explore(record, body, budget, most_paths, context, start)
            record.asked |= names_bound(key[0])
            record.units = rests_on(record.asked, self.binders, self.memory.unit_asked)
        self.memory.records[key] = record
        self.waiting -= 1
        self.shared -= record.spent if budget < SCRIPT_BUDGET else 0
        self.keep(record)

    def rests_unchanged(self, record: Record) -> bool:
        return record.units == rests_on(record.asked, self.binders, self.memory.unit_asked)

    def call_method_alone(
        self, machine: Machine, cls: ClassValue, method: Function, context: str, start: SharedStart
    ) -> None:
        receiver = start.receiver
        if receiver is None:
            assert cls.unit is not None
            assert cls.node is not None
            machine.frame = self.outer_frame(machine, cls.unit)
            if method.defined().name == "__init__":
                machine.making_budget = machine.budget
            given = self.giving.unknown_parts(cls) | self.options
            receiver = make_receiver(machine, cls, given | given_to_constructor(machine, machine.frame, cls))
            if method.defined().name == "__init__":
                return
            forget_state(receiver)
            start.keep(machine, receiver)
        self.call_alone(
            machine,
            method,
            [] if method.binding == "static" else [receiver if method.binding != "class" else cls],
            context,
        )

    def call_alone(self, machine: Machine, function: Function, given: list[Value], context: str) -> None:
        defined = function.defined()
        machine.frame = self.outer_frame(machine, defined.unit)
        machine.assuming = context in ("forward", "loss")
        machine.has_receiver = bool(given)
        args, named = arguments_for(
            machine, lambda: self.outer_frame(machine, defined.unit), defined, given, context
        )
        # What happened to the object before is of an earlier moment than the first thing that the call does.
        machine.tick = started = machine.tick + 1
        machine.language.watched = defined.node
        try:
            result = machine.language.call_function(function, args, named, defined.node)
        except PathEnded:
            if machine.ended_early and machine.ended_at is not None:
                unfinished = still_read(machine.ended_at)
                differentiate(machine, unfinished, defined, self.outer_frame(machine, defined.unit))
            raise
        if context == "function" and given and isinstance(given[0], Instance):
            optimizers = [one for one in machine.optimizers if machine.entry.outlives(one, started)]
            may_be_cleared = self.calls.callers_do("zero_grad", defined.name)
            machine.frame = self.outer_frame(machine, defined.unit)
            names = machine.entry.attributes_with(optimizers, given[0])
            machine.tell(MethodReturned(defined.name, given[0], started, optimizers, names, may_be_cleared))
        if function is not defined and not machine.entry.graphs_in([result], {}):
            # What decorators of other files make of it is not known: it holds what the function itself returned.
            result = machine.language.returned_inside
        differentiate(machine, result, defined, self.outer_frame(machine, defined.unit))

    def outer_frame(self, machine: Machine, unit: Unit) -> Frame:
        return Frame("<module>", unit, self.namespace, Scope(self.namespace, None), 0, machine.numbering)


def explore_module(program: Program, source: Source, memory: Memory, units: list[Unit]) -> list[Record]:
    """The records of all entries of a module; `memory` is what is kept for the next time."""
    known = memory.same_outcome(units)
    return (
        concluded(memory, known) if known is not None else Explorer(program, source.path, memory, units).run()
    )
