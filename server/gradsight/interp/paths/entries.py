"""Where execution starts: the script itself, then functions and modules that the script did not reach.

A function that nothing calls is executed with unknown arguments.  In the forward of a module (and in loss functions) an
argument that is used as a tensor is taken to carry a graph, and backward is taken to be called on the result: that is
the one assumption, and the event says it.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

from gradsight.interp.memory import Memory, Record, binders_of, names_bound, only_defines, rests_on
from gradsight.interp.parsing import parse_text
from gradsight.interp.path_state import PathEnded, Program, RaisedError, Unwanted
from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.call_graph import (
    REGISTER,
    TRAIN,
    WRITE,
    CallGraph,
    applies_a_module,
    leads_somewhere,
    summary_of,
)
from gradsight.interp.paths.drivers import DRIVER_PATHS, called_by_library, driver_budget, driver_of
from gradsight.interp.paths.entry_kinds import (
    functions_in,
    is_differentiable,
    is_loss_name,
    is_module_class,
    takes_tensors,
)
from gradsight.interp.paths.receivers import forget_state, unknown_roles
from gradsight.interp.paths.roles import (
    PLAIN_KINDS,
    annotated_role,
    annotation_text,
    is_constant_name,
    is_source_name,
    is_tensor_annotation,
)
from gradsight.model.sites import Frame, Unit
from gradsight.model.source import Source
from gradsight.model.trace import ForwardReturned
from gradsight.model.values import (
    ClassValue,
    Function,
    Instance,
    ModuleState,
    PythonModule,
    Scope,
    Seq,
    Unknown,
)

SCRIPT_BUDGET = 40_000
SHARED_BUDGET = 12_000
PER_LINE = 10
SHARED_PER_LINE = 40
ENTRY_BUDGET = 1_500
ENTRY_PER_LINE = 30
MAKING = 3
"""An `__init__` costs more than its lines tell: it makes the parts, too."""
FAIR_SHARES = 12
"""How many times its share of what is left an entry may spend."""
MOST_PATHS = 10


class Explorer:
    """Executes entries and gathers their events.

    The script has a budget of its own; the functions and classes it did not reach share one that grows with the length
    of the file, so that the cost of an analysis stays linear.  What is remembered of an earlier analysis is used where
    nothing it rests on has changed; the outcome is the same as if everything were executed.
    """

    machine: type[Machine] = Machine

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
        self.lines = sum(unit.height for unit in units)
        self.shared = SHARED_BUDGET + SHARED_PER_LINE * self.lines
        self.calls = CallGraph(function for unit in units for function in functions_in(unit))
        self.waiting = sum(len(named) for named in self.calls.by_name.values())
        """Functions that may still want a part of the shared budget."""
        self.differentiated: set[ast.AST] = set()
        """Functions whose results modules, losses or other such functions use."""

    def run(self) -> list[Record]:
        """The records of all entries, in order."""
        memory = self.memory
        previous = memory.records
        if not self.script_still_holds():
            self.execute_script()
        script = memory.script
        assert script is not None
        memory.units = self.units
        self.keep(script)
        memory.records = {}
        classes, functions = self.definitions()
        self.note_differentiated(classes, functions)
        for cls in classes:
            self.give_up_if_unwanted(previous)
            self.drive(cls, previous)
        # What is called by others comes later: it is executed from its callers, with their values, if they reach it.
        for turn in (1, 2, 3):
            self.turn = turn
            for cls in classes:
                self.give_up_if_unwanted(previous)
                self.run_class(cls, previous)
            for function in functions:
                self.give_up_if_unwanted(previous)
                self.run_function(function, previous)
        return self.records

    turn = 0
    """First what nothing calls and all forwards, then helpers that nobody has reached, last forwards that do nothing themselves."""

    def turn_of(self, node: Any, is_called: bool, context: str) -> int:
        if context != "function" and not self.calls.reasons_for(node):
            return 3
        return 2 if is_called else 1

    def definitions(self) -> tuple[list[ClassValue], list[Function]]:
        """The classes and functions that the file binds to names."""
        values = [value for value in self.namespace.values() if getattr(value, "unit", None) in self.alive]
        return (
            [value for value in values if isinstance(value, ClassValue)],
            [value for value in values if isinstance(value, Function)],
        )

    def note_differentiated(self, classes: list[ClassValue], functions: list[Function]) -> None:
        """Find what is part of a forward or a loss, and all names that anything calls."""
        start: list[ast.AST] = [one.node for one in functions if is_loss_name(one.name)]
        in_model_file = any(is_module_class(cls) for cls in classes)
        start += [
            one.node
            for one in functions
            if applies_a_module(one.node) or (in_model_file and takes_tensors(one.node))
        ]
        for cls in classes:
            for member in cls.namespace.values():
                if isinstance(member, Function) and is_differentiable(member, cls):
                    start.append(member.node)
        reached = self.calls.reached_from(start)
        self.differentiated = {node for node in reached if not summary_of(node).steps}
        self.called_names = {
            name for named in self.calls.by_name.values() for node in named for name in summary_of(node).calls
        }

    called_names: set[str] = set()

    def give_up_if_unwanted(self, previous: dict[tuple[Unit, str], Record]) -> None:
        """Records that were not looked at yet stay for the next analysis, which finds out whether they hold."""
        if self.program.is_unwanted():
            self.memory.records = {**previous, **self.memory.records}
            raise Unwanted

    def keep(self, record: Record) -> None:
        self.records.append(record)
        self.executed |= record.executed

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
        if not all(self.is_bound_as_before(name, fresh) for name in names):
            return False
        for unit in gone:
            memory.unit_asked.pop(unit, None)
            for name in names_bound(unit):
                if name not in self.binders:
                    self.namespace.pop(name, None)
        script.gaps = {gap: count for gap, count in script.gaps.items() if gap[1] in self.alive}
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
            self.restore_order()
        return True

    def is_bound_as_before(self, name: str, fresh: list[Unit]) -> bool:
        """Whether the unit that binds a name last is new, or bound it last before too; then its value is known."""
        now = self.binders.get(name)
        if not now or now[-1] in fresh:
            return True
        before = [unit for unit in self.memory.units if name in names_bound(unit)]
        return bool(before) and before[-1] is now[-1]

    def restore_order(self) -> None:
        """The namespace in the order in which the file binds its names, as a fresh execution leaves it."""
        order: dict[str, Any] = {}
        for unit in self.units:
            for name in self.ordered_names(unit):
                if name in self.namespace and name not in order:
                    order[name] = self.namespace[name]
        for name, value in self.namespace.items():
            order.setdefault(name, value)
        self.namespace.clear()
        self.namespace.update(order)

    def ordered_names(self, unit: Unit) -> list[str]:
        return sorted(names_bound(unit))

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
        self.restore_order()
        memory.script = record

    # -- paths -------------------------------------------------------------------------------------------------------

    def explore(
        self,
        record: Record,
        body: Callable[[Machine], None],
        budget: int,
        most_paths: int,
        context: str = "script",
    ) -> None:
        """Run one entry along its paths."""
        given = budget
        pending: list[list[bool]] = [[]]
        wanted: list[list[bool]] = []
        """Paths into arms that write, cut or train: these come first, and there may be more of them."""
        covered: set[tuple[int, bool, bool]] = set()
        together = self.program.audience.gather()
        paths = 0
        module = PythonModule("__main__", self.path)
        while budget > 0 and paths < (MOST_PATHS if wanted else most_paths):
            if not wanted and not pending:
                break
            script = (wanted or pending).pop(0)
            machine = self.machine(self.program, module, script, budget)
            machine.context = context
            if context != "script":
                machine.isolated = True
                machine.entry.adopt(self.memory.modules)
            paths += 1
            try:
                body(machine)
                machine.entry.finish()
            except (PathEnded, RaisedError):
                with contextlib.suppress(PathEnded, RaisedError):
                    machine.entry.finish()
            except RecursionError:
                machine.gaps[("the program is nested too deeply", self.units[0], 0)] = 1
            self.path_ended(machine)
            budget = machine.budget
            record.executed |= machine.executed
            record.asked |= machine.asked
            if paths == 1:
                record.gaps = machine.gaps
            together.add(machine.listener, machine.arms)
            for decision in machine.decisions:
                covered.add((id(decision.node), decision.choice, decision.later))
            for index in range(len(script), len(machine.decisions)):
                decision = machine.decisions[index]
                flipped = (id(decision.node), not decision.choice, decision.later)
                if flipped not in covered:
                    covered.add(flipped)
                    other = [d.choice for d in machine.decisions[:index]] + [not decision.choice]
                    leads = leads_somewhere(decision.node, not decision.outcome)
                    (wanted if leads else pending).append(other)
        record.events = together.conclusions()
        record.spent = given - max(0, budget)

    def path_ended(self, machine: Machine) -> None:
        """Hook: a path was executed."""

    # -- functions and classes that the script did not reach ---------------------------------------------------------

    def wants(self, node: Any, context: str) -> bool:
        """Whether a function is worth executing by itself."""
        if node in self.executed or self.shared <= 0:
            return False
        reasons = self.calls.reasons_for(node)
        if context == "function":
            return bool(reasons & {TRAIN, REGISTER})
        return bool(reasons) or self.writes_somewhere

    @cached_property
    def writes_somewhere(self) -> bool:
        """Whether some forward of the file, or a layer made in it, writes: to what another forward gave it, perhaps."""
        forwards = self.calls.by_name.get("forward", [])
        makers = self.calls.by_name.get("__init__", [])
        return any(WRITE in summary_of(node).reasons for node in [*forwards, *makers])

    def budget_for(self, node: Any) -> int:
        lines = int((node.end_lineno or node.lineno) - node.lineno)
        fair = max(ENTRY_BUDGET, FAIR_SHARES * self.shared // max(1, self.waiting))
        return min(self.shared, fair, ENTRY_BUDGET + ENTRY_PER_LINE * lines)

    def context_of(self, function: Function, cls: ClassValue | None) -> str:
        if cls is not None and is_module_class(cls) and function.name == "forward":
            return "forward"
        if function.node in self.differentiated and function.name != "__init__":
            return "loss" if is_loss_name(function.name) else "forward"
        return "function"

    def run_function(self, function: Function, previous: dict[tuple[Unit, str], Record]) -> None:
        context = self.context_of(function, None)
        if isinstance(function.node, ast.Lambda):
            return
        is_called = function.name in self.called_names
        if self.turn not in (0, self.turn_of(function.node, is_called, context)):
            return
        if not self.wants(function.node, context):
            return

        def body(machine: Machine) -> None:
            self.call_alone(machine, function, [], context)

        self.run_entry(
            (function.unit, function.name), previous, body, self.budget_for(function.node), context
        )

    def run_class(self, cls: ClassValue, previous: dict[tuple[Unit, str], Record]) -> None:
        """Execute the methods whose turn it is."""
        if cls.kind == "autograd" or cls.node is None or cls.unit is None:
            return
        members = [value for value in cls.namespace.values() if isinstance(value, Function)]
        # A forward executes most of the others, and every method needs what `__init__` makes.
        members.sort(key=lambda member: ("forward", member.name, "__init__").index(member.name))
        pieces = [(place, piece) for member in members for place, piece in enumerate(member.pieces())]
        for place, method in pieces:
            if isinstance(method.node, ast.Lambda) or method.unit is not cls.unit:
                continue
            context = self.context_of(method, cls)
            is_called = method.name in self.called_names and method.name not in ("__init__", "forward")
            if self.turn not in (0, self.turn_of(method.node, is_called, context)):
                continue
            if not self.wants(method.node, context):
                continue

            def body(machine: Machine, method: Function = method, context: str = context) -> None:
                self.call_method_alone(machine, cls, method, context)

            budget = self.budget_for(method.node)
            init, _ = cls.find("__init__")
            if isinstance(init, Function) and method.name != "__init__":
                budget = min(self.shared, budget + MAKING * self.budget_for(init.node))
            self.run_entry(
                (cls.unit, f"{cls.name}.{method.name}{'+' * place}"), previous, body, budget, context
            )

    def drive(self, cls: ClassValue, previous: dict[tuple[Unit, str], Record]) -> None:
        """Start a class of a library as the library does, unless all that the library calls was executed."""
        driver = driver_of(cls)
        if driver is None or cls.unit is None or called_by_library(cls) <= self.executed:
            return

        def body(machine: Machine) -> None:
            assert cls.unit is not None
            machine.frame = self.outer_frame(machine, cls.unit)
            receiver = self.make_receiver(machine, cls)
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
    ) -> None:
        """Execute one entry, or take what is remembered of it."""
        known = previous.get(key)
        if known is not None and known.spent < budget and self.rests_unchanged(known):
            record = known
        else:
            record = Record()
            self.explore(record, body, budget, most_paths, context)
            record.asked |= names_bound(key[0])
            record.units = rests_on(record.asked, self.binders, self.memory.unit_asked)
        self.memory.records[key] = record
        self.waiting -= 1
        self.shared -= record.spent
        self.keep(record)

    def rests_unchanged(self, record: Record) -> bool:
        return record.units == rests_on(record.asked, self.binders, self.memory.unit_asked)

    def call_method_alone(self, machine: Machine, cls: ClassValue, method: Function, context: str) -> None:
        assert cls.unit is not None
        assert cls.node is not None
        machine.frame = self.outer_frame(machine, cls.unit)
        receiver = self.make_receiver(machine, cls)
        if method.name == "__init__":
            return
        forget_state(receiver)
        self.call_alone(
            machine,
            method,
            [] if method.binding == "static" else [receiver if method.binding != "class" else cls],
            context,
        )

    def make_receiver(self, machine: Machine, cls: ClassValue) -> Instance:
        """An object as its own `__init__` makes it, from unknown arguments."""
        instance = Instance(cls, None)
        if cls.kind == "module":
            instance.module = ModuleState()
            machine.modules_made.append(instance)
        init, _ = cls.find("__init__")
        if isinstance(init, Function):
            try:
                place = cls.node if init.unit.library and cls.node is not None else init.node
                machine.language.call_function(init, [instance], unknown_roles(init, cls), place)
            except (RaisedError, PathEnded):
                instance.open = True
        else:
            instance.open = instance.open or cls.kind == "plain"
            if cls.kind == "module":
                machine.nn.init_module(instance, [], {}, cls.node or ast.Pass())
        return instance

    def call_alone(self, machine: Machine, function: Function, given: list[Any], context: str) -> None:
        machine.frame = self.outer_frame(machine, function.unit)
        machine.assuming = context in ("forward", "loss")
        signature = function.node.args
        parameters = [*signature.posonlyargs, *signature.args]
        args = list(given)
        first_default = len(parameters) - len(function.defaults)
        for index, parameter in enumerate(parameters[len(given) :], start=len(given)):
            args.append(
                self.unknown_argument(
                    machine,
                    function,
                    parameter,
                    function.defaults[index - first_default] if index >= first_default else None,
                    context,
                )
            )
        result = machine.language.call_function(function, args, {}, function.node)
        if result is None:
            return
        losses = machine.entry.graphs_in([result], {})
        if machine.assuming:
            machine.frame = self.outer_frame(machine, function.unit)
            machine.tell(ForwardReturned(result, function.name))
        if losses and machine.assuming:
            machine.autograd.run_backward(
                losses,
                machine.site(function.node),
                True,
                False,
                True,
                how="assumed",
                assumption="backward is called on the result",
            )

    def unknown_argument(
        self, machine: Machine, function: Function, parameter: ast.arg, default: Any, context: str
    ) -> Any:
        name = parameter.arg
        if isinstance(default, (bool, str, int, float)):
            return Unknown(f"argument {name}", {bool: "bool", str: "text"}.get(type(default), "number"))
        value = Unknown(f"argument {name}")
        annotation = annotation_text(parameter)
        role = annotated_role(annotation)
        if role:
            machine.entry.make_stand_in(value, role, name, parameter)
        elif annotation in PLAIN_KINDS:
            value.hint = PLAIN_KINDS[annotation]
        elif is_constant_name(name) or is_source_name(name):
            value.plain = is_constant_name(name) if context != "function" else is_source_name(name)
        elif not annotation or is_tensor_annotation(annotation):
            value.argument = name
        return value

    def outer_frame(self, machine: Machine, unit: Unit) -> Frame:
        return Frame("<module>", unit, self.namespace, Scope(self.namespace, None), 0, machine.numbering)


def explore_module(program: Program, source: Source, memory: Memory, units: list[Unit]) -> list[Record]:
    """The records of all entries of a module; `memory` is what is kept for the next time."""
    return Explorer(program, source.path, memory, units).run()


__all__ = ["Seq", "explore_module", "parse_text"]
