"""`%load_ext gradsight`: blame in the live kernel, cell by cell, and `%gradsight NAME` for the state of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradsight.agent import sites
from gradsight.live import watching
from gradsight.live.words import html_of, notes_of, remember_cell

if TYPE_CHECKING:
    from gradsight.agent.faults import Fault

VSCODE_MARK = "__vsc_ipynb_file__"
"""A name that VS Code defines in the kernels that it starts for a notebook."""


class NotebookBlame:
    """Listens to the cells of one shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.watch = self._listen()
        # Of the running cell, by the identity of the error: one that the cell catches itself is not shown.
        self._told: dict[int, Fault] = {}

    def _listen(self) -> watching.Watching:
        watch = watching.watch(report=False)
        watch.on_fault = self._show
        return watch

    def load(self) -> None:
        """From here on every cell is known by its number."""
        sites.find_cells_by(self.cell_of)
        self.shell.events.register("post_run_cell", self._after_cell)
        self.shell.register_magic_function(self._magic, "line", "gradsight")

    def unload(self) -> None:
        """The shell is as it was."""
        sites.find_cells_by(None)
        self.shell.events.unregister("post_run_cell", self._after_cell)
        self.shell.magics_manager.magics["line"].pop("gradsight", None)
        self.watch.stop()

    def _after_cell(self, result: Any = None) -> None:
        error = getattr(result, "error_in_exec", None)
        if isinstance(error, Exception):
            self.watch.explain(error)
            fault = self._told.get(id(error))
            if fault is not None:
                _display(fault, is_vscode=VSCODE_MARK in self.shell.user_ns)
        self._told.clear()

    def _show(self, error: BaseException, fault: Fault) -> None:
        self._told[id(error)] = fault

    def cell_of(self, filename: str) -> tuple[str, int] | None:
        """The cell that a pseudo file of IPython is; a cell gets its number when it is compiled."""
        number = getattr(self.shell.compile, "_filename_map", {}).get(filename)
        if number is None:
            return None
        remember_cell(int(number), filename)
        return "notebook", int(number)

    def _magic(self, line: str) -> None:
        """`%gradsight name` says who made a tensor and who saved it; alone it reports; `on` and `off` switch the watch."""
        word = line.strip()
        if word == "off":
            self.watch.stop()
            print("gradsight: off")
        elif word == "on":
            if not self.watch.is_on:
                self.watch = self._listen()
            print("gradsight: on")
        elif not word:
            print(self.watch.report())
        else:
            print(self.state_of(word))

    def state_of(self, expression: str) -> str:
        """What is known of the tensor that a name or an attribute path stands for."""
        value: Any = None
        parts = expression.split(".")
        if not all(part.isidentifier() for part in parts):
            return f"gradsight: `{expression}` is not a name: say `%gradsight loss` or `%gradsight net.fc.weight`"
        if parts[0] not in self.shell.user_ns:
            return f"gradsight: there is no `{parts[0]}`"
        value = self.shell.user_ns[parts[0]]
        for part in parts[1:]:
            if not hasattr(value, part):
                return f"gradsight: `{expression}` has no `{part}`"
            value = getattr(value, part)
        return self.watch.state_of(expression, value)


_loaded: NotebookBlame | None = None


def load(shell: Any) -> None:
    """Begins to listen."""
    global _loaded
    if _loaded is not None:
        unload(shell)
    _loaded = NotebookBlame(shell)
    _loaded.load()


def unload(shell: Any) -> None:
    """Listens no more."""
    global _loaded
    if _loaded is not None:
        _loaded.unload()
        _loaded = None


def _display(fault: Fault, *, is_vscode: bool) -> None:
    from IPython.display import display

    block = {"text/plain": "\n".join(notes_of(fault)), "text/html": html_of(fault, is_vscode=is_vscode)}
    display(block, raw=True)
