"""Imports of workspace modules: found when they are named, executed piece by piece as their names are needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gradsight.interp.memory import names_bound
from gradsight.interp.path_state import PathEnded, PathState, RaisedError
from gradsight.interp.paths.unit_runner import UnitRunner
from gradsight.model.sites import Unit
from gradsight.model.source import Source
from gradsight.model.values import MISSING, External, Names, Pending, PythonModule, Value

Finder = Callable[[str, int, str], Source | None]
OURS = "model of "
"""How the path of one of our models begins; it names a module and no file."""
IMPORT_STATE = (
    "frame", "node", "unheard", "asked", "decisions", "script", "grad_mode", "inference", "autocast", "mode_site", "ended_at",
)  # fmt: skip
"""What the execution of an import leaves as it was."""
MOST_PER_IMPORT = 20_000
"""Syntax nodes that one name from elsewhere may cost; an import inside an import has half of what is left."""


class Importing(UnitRunner):
    """A machine that knows the workspace."""

    def __init__(self, path: PathState) -> None:
        super().__init__(path)
        self.modules: dict[str, PythonModule] = {}
        self.is_importing = False

    def adopt(self, modules: dict[str, PythonModule]) -> None:
        """Use the workspace modules that the script's execution has already loaded."""
        self.modules = modules

    def find_module(self, name: str, level: int) -> PythonModule | None:
        """A module of the workspace or of the user's own models, else our model of a library."""
        finder: Finder | None = self.path.program.finder
        importer = self.path.frame.unit
        is_ours = importer.path.startswith(OURS)
        source = self.from_workspace(finder, name, level) if finder is not None and not is_ours else None
        if source is not None and not level and self.is_library_itself(name, importer.path):
            source = None
        is_theirs = source is not None
        if source is None and not level:
            source = self.path.program.models(name)
        if source is None:
            return None
        known = self.modules.get(source.path)
        if known is None:
            known = self.modules[source.path] = PythonModule(name, source.path)
            known.source = source
            if is_theirs:
                self.path.program.depends_on.add(source.path)
        return known

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

    def load_module(self, module: PythonModule) -> None:
        """Execute a workspace module when something of it is first needed."""
        if module.loaded or module.source is None:
            return
        module.loaded = True
        eager, module.namespace.waiting = self.path.program.divided(module.source)
        if not eager and not module.namespace.waiting and module.source.text.strip():
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
        imported = self.modules.get(path) if path != self.path.module.path else None
        return imported.name if imported is not None else "__main__"
