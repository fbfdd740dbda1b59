"""Imports of workspace modules: found when they are named, executed piece by piece as their names are needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gradsight.interp.path_state import PathEnded, PathState, RaisedError
from gradsight.interp.paths.private_copies import CHANGEABLE, Memo, private_copy, states_of
from gradsight.interp.paths.shared_modules import OURS, Execution, SharedModules, is_broken, put, value_of
from gradsight.interp.paths.unit_runner import UnitRunner
from gradsight.interp.shared_names import is_shared
from gradsight.interp.used_names import EVERYTHING, merge, use
from gradsight.interp.visible_text import names_bound
from gradsight.model.sites import Unit
from gradsight.model.source import Source
from gradsight.model.values import (
    MISSING,
    ClassValue,
    External,
    Function,
    Names,
    Pending,
    PythonModule,
    Value,
)

Finder = Callable[[str, int, str], Source | None]
IMPORT_STATE = (
    "frame", "node", "unheard", "asked", "decisions", "script", "grad_mode", "inference", "autocast", "mode_site", "ended_at",
)  # fmt: skip
"""What the execution of an import leaves as it was."""
MOST_PER_IMPORT = 20_000
"""Syntax nodes that one name from elsewhere may cost; an import inside an import has half of what is left."""


class OwnModules(dict[str, PythonModule]):
    """The modules that a path has executed for itself, and what it has changed of those that it shares with others."""

    __slots__ = ("changes", "private")

    def __init__(self, private: dict[tuple[int, str], Value]) -> None:
        super().__init__()
        self.private = private
        self.changes: list[tuple[ClassValue | Function, str, Any]] = []


class Importing(UnitRunner):
    """A machine that knows the workspace."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.modules: dict[str, PythonModule] = OwnModules(path.private)
        self.inherited: dict[tuple[int, str], Value] = {}
        """What the script has for itself of shared modules, for the entries that come after it."""
        self.has_adopted = False
        self.copies: Memo = {}
        self.is_importing = False
        shared: SharedModules | None = path.program.shared
        self.execution: Execution | None = None
        """On the machine of a shared module: what is being executed of it."""
        if shared is not None:
            self.execution = shared.running[-1] if shared.running else None
            shared.begin_path()

    def adopt(self, modules: dict[str, PythonModule]) -> None:
        """Use the workspace modules that the script's execution has already loaded."""
        self.modules = modules
        self.has_adopted = True
        if isinstance(modules, OwnModules):
            self.inherited = modules.private
            for owner, name, value in modules.changes:
                self.change_shared(owner, name, value)

    def changes_of_shared(self) -> int:
        """How much of shared modules the path has changed so far."""
        shared: SharedModules | None = self.path.program.shared
        return len(shared.changes) if shared is not None else 0

    def undo_changes_of_shared(self, count: int) -> None:
        """What the path has changed of shared modules after the first so many changes is as it was."""
        if self.path.program.shared is not None:
            self.path.program.shared.undo(count)

    def find_module(self, name: str, level: int) -> PythonModule | None:
        """A module of the workspace or of the user's own models, else our model of a library."""
        finder: Finder | None = self.path.program.finder
        importer = self.path.frame.unit
        is_ours = importer.path.startswith(OURS)
        source = self.from_workspace(finder, name, level) if finder is not None and not is_ours else None
        if source is not None and not level and self.is_meant_for_library(name, source, importer.path):
            source = None
        is_theirs = source is not None
        if source is None and not level:
            source = self.path.program.models(name)
        if source is None:
            return None
        if is_theirs:
            self.path.program.uses.setdefault(source.path, set())
        shared: SharedModules | None = self.path.program.shared
        if shared is not None:
            return shared.module_of(source, finder)
        known = self.modules.get(source.path)
        if known is None:
            known = self.modules[source.path] = PythonModule(name, source.path)
            known.source = source
        return known

    def module_of_workspace(self, name: str) -> PythonModule | None:
        """A module of the workspace by its absolute name."""
        finder: Finder | None = self.path.program.finder
        is_known = finder is not None and finder(name, 0, self.path.frame.unit.path) is not None
        return self.find_module(name, 0) if is_known else None

    def class_shown_above(self, module: str, name: str) -> ClassValue | None:
        """A class that a library shows further up, too: `pytorch_lightning.core.LightningModule` is `pytorch_lightning`'s."""
        while "." in module:
            module = module.rpartition(".")[0]
            found = self.find_module(module, 0)
            if found is not None:
                if found.source is None or not found.source.library:
                    return None
                shown = self.libraries.module_attribute(found, name)
                if isinstance(shown, ClassValue):
                    return shown
        return None

    def is_meant_for_library(self, name: str, source: Source, importer: str) -> bool:
        """Whether an import names a library though the workspace has a module of that name.

        Inside a package `import lightning` is not the file `lightning.py` of that package.
        """
        program, top = self.path.program, name.partition(".")[0]
        beside = f"{importer.rpartition('/')[0]}/{top}"
        if source.path.startswith((f"{beside}.py", f"{beside}/")) and program.models(top) is not None:
            if program.finder is not None and program.finder("", 1, importer) is not None:
                return True
        return self.is_library_itself(name, importer)

    def is_library_itself(self, name: str, importer: str) -> bool:
        """Whether the workspace holds a library that there is a model of, and a file outside of it imports it.

        Such a file (an example, a benchmark) uses the library as everybody does.
        """
        program = self.path.program
        top = name.partition(".")[0]
        known = program.has_library.get(top)
        if known is None:
            package = program.finder(top, 0, importer) if program.finder is not None else None
            known = ""
            if package is not None and not package.library and program.models(top) is not None:
                folder, _, file = package.path.rpartition("/")
                use(program.uses, package.path, EVERYTHING)
                if file == "__init__.py" and "__version__" in package.text:
                    known = f"{folder}/"
            program.has_library[top] = known
        return bool(known) and not importer.startswith(known)

    def from_workspace(self, finder: Finder, name: str, level: int) -> Source | None:
        """A module beside the importing file or in its project, else one of the user's own models."""
        folder = self.path.program.own_models
        source = finder(name, level, self.path.frame.unit.path)
        if not folder:
            return source
        if source is None and not level:
            source = finder(name, 0, f"{folder}__init__.py")
            if source is not None and not source.path.startswith(folder):
                return None
        if source is not None and source.path.startswith(folder) and not source.library:
            source = replace(source, library=name.partition(".")[0] or "a library")
        return source

    def absent_name(self, module: PythonModule, name: str) -> Value:
        """A model has only what matters for gradients; of the rest of its library no more is known than without it."""
        if module.source is not None and module.source.library:
            return External(f"{module.name}.{name}")
        return self.path.gap(f"{name} is not in {module.name}", kind="import")

    def load_module(self, module: PythonModule) -> PythonModule:
        """Execute a workspace module when something of it is first needed; gives the one to use on this path."""
        if module.namespace.shared:
            shared: SharedModules = self.path.program.shared
            execution = shared.load(module, self.path)
            self.note(execution)
            if not execution.is_refused:
                return module
            module = self.own_module(module)
        if not module.loaded and module.source is not None:
            self.execute_module(module)
        return module

    def own_module(self, module: PythonModule) -> PythonModule:
        """A module that this path executes for itself."""
        known = self.modules.get(module.path)
        use(self.path.program.uses, module.path, EVERYTHING)
        if known is None:
            known = self.modules[module.path] = PythonModule(module.name, module.path)
            known.source = module.source
        return known

    def execute_module(self, module: PythonModule) -> None:
        module.loaded = True
        eager, module.namespace.waiting = self.path.program.divided(module.source)
        if not eager and not module.namespace.waiting and is_broken(module.source):
            self.path.gap(f"{module.name} does not parse", kind="syntax")
        if not self.run_imported(eager, module):
            self.path.grad_mode = False

    def bind_waiting(self, names: Names, name: str) -> Value:
        """Execute the statements of an imported module that bind a name; MISSING if they did not."""
        units = names.waiting[name]
        for unit in units:
            for bound in names_bound(unit):
                names.waiting.pop(bound, None)
        self.run_imported(units, names.module)
        value = names.get(name, MISSING)
        if type(value) is Pending:
            value = names[name] = self.libraries.resolve_import(value, self.path.node)
        return value

    def run_imported(self, units: list[Unit], module: PythonModule) -> bool:
        """Execute statements of an imported module: in no mode, on no path, and unheard.  Tells the grad mode it leaves."""
        if not units:
            return True
        outside = {name: getattr(self.path, name) for name in IMPORT_STATE}
        own, early = self.path.budget, self.path.ended_early
        self.path.budget = (
            self.path.budget // 2
            if self.is_importing
            else min(self.path.program.import_budget, MOST_PER_IMPORT)
        )
        given, outermost, self.is_importing = self.path.budget, not self.is_importing, True
        ran_out = ""
        self.path.unheard, self.path.asked, self.path.decisions, self.path.script = True, set(), [], []
        self.path.grad_mode, self.path.inference, self.path.autocast, self.path.mode_site = (
            True,
            False,
            False,
            None,
        )
        try:
            self.run_units(units, module.namespace)
            return self.path.grad_mode
        except (PathEnded, RaisedError):
            if self.path.budget < 0 and outermost:
                ran_out = module.name
            return True
        finally:
            spent = given - max(0, self.path.budget)
            if outermost:
                self.path.program.import_budget -= spent
                self.is_importing = False
            self.path.budget, self.path.ended_early = own if outermost else own - spent, early
            for name, value in outside.items():
                setattr(self.path, name, value)
            if ran_out:
                self.path.gap(f"the limit of work was reached while {ran_out} was imported", kind="budget")

    def module_name(self) -> str:
        """What `__name__` is in the running code."""
        path = self.path.frame.unit.path
        if path == self.path.module.path:
            return "__main__"
        shared: SharedModules | None = self.path.program.shared
        imported = self.modules.get(path) or (shared.modules.get(path) if shared is not None else None)
        return imported.name if imported is not None else "__main__"

    # -- modules that many paths use ---------------------------------------------------------------------------------

    def note(self, execution: Execution) -> None:
        """This path rests on an execution, and on all that it rests on."""
        if self.execution is not None:
            if execution is not self.execution and execution not in self.execution.needs:
                self.execution.rest_on(execution)
                self.execution.effects.update(execution.effects)
                self.path.private.update((key, value) for key, (_, value) in execution.effects.items())
            return
        program = self.path.program
        if execution in program.noted:
            return
        program.effects.update((key, value) for key, (_, value) in execution.effects.items())
        todo = [execution]
        while todo:
            one = todo.pop()
            if one in program.noted:
                continue
            program.noted.add(one)
            todo += one.needs
            for gap, count in one.gaps.items():
                self.path.gaps[gap] = self.path.gaps.get(gap, 0) + count
            if one.ran_out:
                self.path.gap(one.ran_out, kind="budget")
            merge(program.uses, one.uses)
            use(program.uses, one.module.path, "")
            for question in one.questions:
                program.finder(*question)

    def read_shared(self, names: dict[str, Value], name: str) -> Value:
        """What a name of a shared module, class or closure stands for on this path; MISSING if it is not bound."""
        key = (id(names), name)
        found = self.path.private.get(key, MISSING)
        if found is not MISSING:
            return found
        if key in self.inherited:
            return self.language.private_value(names, name, self.inherited[key])
        if key in self.path.program.effects:
            return self.private_part(key, names, self.path.program.effects[key])
        value = self.shared_name(names, name) if isinstance(names, Names) else names.get(name, MISSING)
        if type(value) is Pending:
            value = self.path.private[key] = self.libraries.resolve_import(value, self.path.node)
            return value
        return self.private_part(key, names, value)

    def shared_name(self, names: Names, name: str) -> Value:
        """What a name stands for to everybody; what belongs to each path is executed on this one."""
        shared: SharedModules = self.path.program.shared
        use(self.path.program.uses, names.module.path, name)
        if name in names.waiting:
            shared.bind(names, name, self.path)
        value = names.get(name, MISSING)
        if type(value) is Pending and (id(names), name) not in shared.resolving:
            execution: Execution | None = names.module.executions.get(name)
            if execution is None or not execution.is_refused:
                shared.resolve(names, name, value, self.path)
                value = names.get(name, MISSING)
        execution = names.module.executions.get(name)
        if execution is not None:
            self.note(execution)
            if execution.is_refused and type(value) is not Pending:
                own = self.own_module(names.module)
                value = self.path.private[id(names), name] = self.libraries.module_attribute(own, name)
        return value

    def private_part(self, key: tuple[int, str], names: dict[str, Value], value: Value) -> Value:
        """A copy of a shared value for this path alone, where the value could be changed."""
        if not isinstance(value, CHANGEABLE):
            return value
        if self.execution is not None:
            is_own = not is_shared(names) or names.module is self.execution.module
            if not is_own or key in self.path.program.shared.brought:
                states_of(value, self.execution.watched)
            return value
        found = self.path.private.get(key, MISSING)
        if found is MISSING:
            found = self.path.private[key] = private_copy(value, self.copies)
        return found

    def write_shared(self, names: dict[str, Value], name: str, value: Value) -> None:
        """Bind a name of a shared module: for this path, or for all where the module itself does it."""
        if self.execution is not None and is_shared(names) and names.module is self.execution.module:
            names[name] = value
            return
        self.path.private[id(names), name] = value
        if self.execution is not None:
            self.execution.effects[id(names), name] = (names, value)

    def change_shared(self, owner: ClassValue | Function, name: str, value: Any) -> bool:
        """Change a function or class of a shared module until the path ends; False if it is not of a shared module."""
        names = owner.namespace if isinstance(owner, ClassValue) else owner.scope.names
        if not is_shared(names):
            return False
        if self.execution is not None and names.module is self.execution.module:
            put(owner, name, value)
            return True
        shared: SharedModules = self.path.program.shared
        shared.changes.append((owner, name, value_of(owner, name)))
        put(owner, name, value)
        if self.execution is None and not self.has_adopted and isinstance(self.modules, OwnModules):
            self.modules.changes.append((owner, name, value))
        return True
