"""Modules that are executed once and used by every path of every file that imports them.

*Execution*: how some names of a module came to be bound, or how the module was loaded: on a machine and with a budget of its
own, heard by nobody, with what it rests on.  An execution that makes tensors or torch modules, steps out of grad mode, or changes
what another module holds (a registry) is *refused*: what it does belongs to the path that imports it, and each such path executes
it for itself.  Everything else is the same for everybody, and what a path changes of it, it changes in a copy of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradsight.interp.memory import Gaps
from gradsight.interp.parsing import parse_text
from gradsight.interp.path_state import PathEnded, PathState, Program, RaisedError
from gradsight.interp.paths.private_copies import State, enclose, is_as_before, restore
from gradsight.interp.used_names import Outlines, Uses
from gradsight.interp.visible_text import names_bound
from gradsight.model.sites import Frame, Unit
from gradsight.model.source import Source
from gradsight.model.values import MISSING, ClassValue, Function, Names, Pending, PythonModule, Scope, Value
from gradsight.ops.table import Table

Finder = Callable[[str, int, str], Source | None]
Question = tuple[str, int, str]
MachineMaker = Callable[[Program, PythonModule, list[bool], int], Any]
Changes = list[tuple[Any, str, Value]]
PURSE = 120_000
"""Syntax nodes that one execution may cost; what it imports has a purse of its own."""
OURS = "model of "
"""How the path of one of our models begins; it names a module and no file."""


class Execution:
    """One execution of statements of a shared module."""

    __slots__ = (
        "effects",
        "gaps",
        "is_refused",
        "module",
        "needs",
        "questions",
        "ran_out",
        "users",
        "uses",
        "watched",
    )

    def __init__(self, module: PythonModule) -> None:
        self.module = module
        self.gaps: Gaps = {}
        self.needs: dict[Execution, None] = {}
        """What it used of other executions."""
        self.users: dict[Execution, None] = {}
        """The executions that used something of it."""
        self.questions: dict[Question, Source | None] = {}
        """What was asked about imports on the way, and the answers."""
        self.uses: Uses = {}
        """What was used of modules on the way."""
        self.is_refused = False
        self.ran_out = ""
        """What was reached, if not all of it could be executed."""
        self.effects: dict[tuple[int, str], tuple[dict[str, Value], Value]] = {}
        """Names of other modules that it has bound anew, and to what: whoever rests on it finds them so."""
        self.watched: dict[int, State] = {}
        """What it was given of other modules and could change, as it was then."""

    def rest_on(self, other: Execution) -> None:
        """Something of another execution was used."""
        self.needs[other] = None
        other.users[self] = None

    def was_changed(self) -> bool:
        """Whether it changed what belongs to others; that is undone."""
        changed = [state for state in self.watched.values() if not is_as_before(state)]
        for state in changed:
            restore(state)
        self.watched = {}
        return bool(changed)


class SharedModules:
    """What is known of modules, for one thread."""

    def __init__(self, make: MachineMaker) -> None:
        self.make = make
        self.table: Table | None = None
        self.own_models = ""
        self.modules: dict[str, PythonModule] = {}
        self.names: dict[str, str] = {}
        """By folder: how the names of modules in it begin."""
        self.running: list[Execution] = []
        self.resolving: set[tuple[int, str]] = set()
        self.brought: set[tuple[int, str]] = set()
        """Names of modules that stand for what they have imported: it belongs to another one."""
        self.changes: Changes = []
        """What the path that runs has changed of functions and classes, and what was there before."""
        self.age = 0
        """How often something was forgotten."""
        self.forgotten: dict[str, int] = {}
        """By path of a module: at which age it was last forgotten."""
        self.outlines = Outlines()

    def use(self, table: Table, own_models: str, source: Source) -> None:
        """A file is analysed: what is known holds for one table of facts, and for the text that the file has now."""
        if table is not self.table or own_models != self.own_models:
            self.modules.clear()
            self.table, self.own_models = table, own_models
        self.renew(source)

    def length(self) -> int:
        """How many characters the texts of all modules have of which something is known."""
        return sum(len(known.source.text) for known in self.modules.values())

    def is_outdated(self, source: Source) -> bool:
        """Whether what is known of a module was said of another text than this."""
        known = self.modules.get(source.path)
        return known is not None and known.source is not source and known.source.text != source.text

    def renew(self, source: Source) -> None:
        """A module has this text now: if it is another one, it is executed again, and so is what rests on it."""
        if self.is_outdated(source):
            self.forget(source.path)
            self.modules[source.path].source = source

    def is_forgotten(self, paths: Iterable[str], age: int) -> bool:
        """Whether one of some modules was forgotten since that age."""
        return self.age != age and any(self.forgotten.get(path, 0) > age for path in paths)

    # -- finding -----------------------------------------------------------------------------------------------------

    def module_of(self, source: Source, finder: Finder | None) -> PythonModule:
        """The module of a source; one whose text has changed is executed again, and so is what rests on it."""
        self.renew(source)
        known = self.modules.get(source.path)
        if known is None:
            known = self.modules[source.path] = PythonModule(self.name_of(source, finder), source.path)
            known.source = source
            known.namespace.shared = True
        return known

    def name_of(self, source: Source, finder: Finder | None) -> str:
        """The whole name of a module, whatever name it was asked for by."""
        if source.path.startswith(OURS):
            return source.path[len(OURS) :]
        folder, _, file = source.path.rpartition("/")
        stem = file.removesuffix(".py")
        if stem == "__init__":
            folder, _, stem = folder.rpartition("/")
        if folder not in self.names:
            self.names[folder] = self.package_of(folder, stem, source, finder)
        return self.names[folder] + stem

    def package_of(self, folder: str, stem: str, source: Source, finder: Finder | None) -> str:
        """`package.inner.` for the folder of that package; empty where modules are imported by their names alone."""
        parts = [part for part in folder.split("/") if part]
        for count in range(min(len(parts), 8), 0, -1):
            name = ".".join([*parts[-count:], stem])
            found = finder(name, 0, source.path) if finder is not None else None
            if found is not None and found.path == source.path:
                return name[: -len(stem)]
        return ""

    def check(self, finder: Finder | None) -> None:
        """Forget what rests on imports that lead elsewhere now, or to another text."""
        asked = [
            (question, answer, module)
            for module in self.modules.values()
            for execution in module.executions.values()
            for question, answer in execution.questions.items()
        ]
        for question, answer, module in asked:
            now = finder(*question) if finder is not None else None
            if now is answer:
                continue
            if now is None or answer is None or now.path != answer.path:
                self.forget(module.path)
            elif now.text != answer.text:
                self.forget(now.path)
                if now.path in self.modules:
                    self.modules[now.path].source = now

    def forget(self, path: str) -> None:
        """A text has changed: the module and all that rests on it are as if nobody had used them."""
        self.age += 1
        todo = [self.modules[path]] if path in self.modules else []
        while todo:
            module = todo.pop()
            self.forgotten[module.path] = self.age
            gone, module.executions = list(module.executions.values()), {}
            module.loaded = False
            module.namespace.clear()
            module.namespace.waiting = {}
            while gone:
                execution = gone.pop()
                todo += [user.module for user in execution.users if user.module.executions]
                for need in execution.needs:
                    if execution in need.users:
                        del need.users[execution]
                        if need.module is module:
                            gone.append(need)

    # -- executing ---------------------------------------------------------------------------------------------------

    def load(self, module: PythonModule, path: PathState) -> Execution:
        """Execute a module, but for the statements that wait."""
        if module.loaded:
            return module.executions[""]  # type: ignore[no-any-return]
        module.loaded = True
        execution = module.executions[""] = Execution(module)
        program = self.program_for(execution, path.program)
        eager, module.namespace.waiting = program.divided(module.source)
        if not eager and not module.namespace.waiting and is_broken(module.source):
            units = program.units_of(module.source)
            place = units[0] if units else Unit(module.path, "", [])
            execution.gaps[f"{module.name} does not parse", place, 0, "syntax"] = 1
        if eager:
            self.execute(execution, program, lambda machine: machine.entry.run_units(eager, module.namespace))
            self.enclose(module, module.namespace)
        if execution.is_refused:
            module.namespace.clear()
        return execution

    def bind(self, names: Names, name: str, path: PathState) -> Execution:
        """Execute the statements that bind a name."""
        module = names.module
        units = names.waiting[name]
        bound = {known for unit in units for known in names_bound(unit)}
        execution = Execution(module)
        for known in bound:
            names.waiting.pop(known, None)
            module.executions[known] = execution
        program = self.program_for(execution, path.program)
        self.execute(execution, program, lambda machine: machine.entry.run_units(units, names))
        self.enclose(module, bound)
        if execution.is_refused:
            for known in bound:
                names.pop(known, None)
        return execution

    def resolve(self, names: Names, name: str, pending: Pending, path: PathState) -> Execution:
        """Find what a name stands for that the module has imported; a circle of such names leads nowhere."""
        module = names.module
        execution = Execution(module)
        before = module.executions.get(name)
        if before is not None:
            execution.rest_on(before)
        key = (id(names), name)
        if key in self.resolving:
            return execution
        self.resolving.add(key)
        program = self.program_for(execution, path.program)
        unit = program.units_of(module.source)[0]

        def look_up(machine: Any) -> None:
            machine.frame = Frame("<module>", unit, names, Scope(names, None), 0, machine.numbering)
            value = machine.libraries.resolve_import(pending, machine.node)
            if type(names.get(name)) is Pending:
                names[name] = value
                self.brought.add(key)

        try:
            self.execute(execution, program, look_up)
        finally:
            self.resolving.discard(key)
        module.executions[name] = execution
        if execution.is_refused and type(names.get(name)) is not Pending:
            names[name] = pending
        return execution

    def program_for(self, execution: Execution, outer: Program) -> Program:
        program = Program(outer.table)
        finder = outer.finder
        if finder is not None:

            def ask(name: str, level: int, importer: str) -> Source | None:
                found: Source | None = finder(name, level, importer)
                execution.questions[name, level, importer] = found
                return found

            program.finder = ask
        program.models, program.own_models, program.shared = outer.models, outer.own_models, self
        program.is_unwanted = outer.is_unwanted
        execution.uses = program.uses
        return program

    def execute(self, execution: Execution, program: Program, body: Callable[[Any], None]) -> None:
        """Execute on a machine of its own, and find out whether everybody may use what came of it."""
        module = execution.module
        self.running.append(execution)
        began = len(self.changes)
        machine = self.make(program, PythonModule("__main__", ""), [], PURSE)
        machine.unheard = True
        ran_out = ""
        try:
            body(machine)
        except (PathEnded, RaisedError):
            if machine.budget < 0:
                ran_out = f"the limit of work was reached while {module.name} was imported"
        except RecursionError:
            ran_out = f"{module.name} is nested too deeply"
        finally:
            self.running.pop()
        execution.ran_out = ran_out
        execution.gaps.update(machine.gaps)
        made = machine.has_made_anything()
        execution.is_refused = (
            made or not machine.grad_mode or execution.was_changed() or len(self.changes) > began
        )
        self.undo(began)
        seen: set[int] = set()
        for _, value in execution.effects.values():
            enclose(value, module, seen)

    def enclose(self, module: PythonModule, names: Iterable[str]) -> None:
        seen: set[int] = set()
        for name in names:
            enclose(module.namespace.get(name), module, seen)

    # -- changes -----------------------------------------------------------------------------------------------------

    def begin_path(self) -> None:
        """A path begins: what the last one changed of functions and classes is undone."""
        if not self.running:
            self.undo(0)

    def set_aside(self) -> Changes:
        """Others go on while a path waits: what it has changed of functions and classes is not for them."""
        changed = [(owner, name, value_of(owner, name)) for owner, name, _ in self.changes]
        self.undo(0)
        return changed

    def resume(self, changed: Changes) -> None:
        """The path that waited goes on with what it has changed."""
        self.undo(0)
        for owner, name, value in changed:
            self.changes.append((owner, name, value_of(owner, name)))
            put(owner, name, value)

    def undo(self, count: int) -> None:
        while len(self.changes) > count:
            owner, name, before = self.changes.pop()
            put(owner, name, before)


def value_of(owner: Any, name: str) -> Value:
    """An attribute of a class or a function as it is; MISSING where there is none."""
    return owner.namespace.get(name, MISSING) if isinstance(owner, ClassValue) else getattr(owner, name)


def put(owner: Any, name: str, value: Value) -> None:
    """Set an attribute of a class or a function, or take it away."""
    if isinstance(owner, ClassValue):
        if value is MISSING:
            owner.namespace.pop(name, None)
        else:
            owner.namespace[name] = value
        owner.note_intercepted()
    elif isinstance(owner, Function):
        setattr(owner, name, value)


def is_broken(source: Source) -> bool:
    """Whether a text does not parse; one of comments alone does, and has no statements."""
    return bool(parse_text(source.path, source.text).problems)
