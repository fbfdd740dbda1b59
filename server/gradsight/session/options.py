"""What an editor's user may choose: when to check, what to show besides findings, and the settings of checking itself.

What pyproject.toml sets holds before what the editor sets, so that an editor shows what continuous integration will say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, Literal

from gradsight.model.settings import Settings
from gradsight.session.probe_options import ProbeOptions, probe_options_from

Run = Literal["onType", "onSave"]
Scope = Literal["open", "workspace"]
LONGEST_DEBOUNCE = 10_000
# Options that speak to the editor's own side; the server lets them pass.
CLIENT_OPTIONS = frozenset({"client", "path", "trace"})
PROBE_OPTIONS = frozenset({"interpreter", "probe"})


@dataclass(frozen=True, slots=True)
class Options:
    """The choices of one editor, or of one of its folders."""

    enable: bool = True
    run: Run = "onType"
    debounce: int = 60
    """Milliseconds of rest after an edit before it is analysed."""
    inlay_hints: bool = False
    code_lens: bool = True
    scope: Scope = "open"
    """Which files `workspace/diagnostic` speaks of."""
    checking: Settings = field(default_factory=Settings)
    probe: ProbeOptions = field(default_factory=ProbeOptions)

    def settings(self, project: Settings) -> Settings:
        """The settings of checking in a project: what it sets holds, the editor fills the rest."""
        return _merged(self.checking, project)


@dataclass(frozen=True, slots=True)
class FolderOptions:
    """The choices of one editor, and of each of its folders, by path, that has its own."""

    common: Options = field(default_factory=Options)
    folders: Mapping[str, Options] = field(default_factory=dict)

    def at(self, path: str) -> Options:
        """The options that hold for a path: those of the innermost folder around it, and of the only one for all."""
        if len(self.folders) <= 1:
            return next(iter(self.folders.values()), self.common)
        around = [folder for folder in self.folders if _is_inside(path, folder)]
        return self.folders[max(around, key=len)] if around else self.common


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith((folder.rstrip("/\\") + "/", folder + "\\"))


@lru_cache(maxsize=32)
def _merged(editor: Settings, project: Settings) -> Settings:
    standard = Settings()
    chosen = {
        each.name: getattr(project, each.name)
        for each in fields(Settings)
        if getattr(project, each.name) != getattr(standard, each.name)
    }
    return replace(editor, **chosen)


def options_from(table: object) -> tuple[Options, tuple[str, ...]]:
    """Options from what an editor sends, and a sentence for each that could not be used; null means not set."""
    if table is None:
        return Options(), ()
    if not isinstance(table, Mapping):
        return Options(), ("the settings of gradsight are not a table",)
    chosen: dict[str, Any] = {}
    checking: dict[str, Any] = {}
    complaints = []
    for key, value in table.items():
        if value is None or key in CLIENT_OPTIONS or key in PROBE_OPTIONS:
            continue
        if key not in _OWN:
            checking[str(key)] = value
            continue
        name, expected, is_fine = _OWN[key]
        if is_fine(value):
            chosen[name] = value
        else:
            complaints.append(f"gradsight.{key}: {expected} is expected; the default is used")
    if checking:
        from gradsight.session.configuration import settings_from

        settings, problems = settings_from(checking)
        chosen["checking"] = settings
        complaints += [f"gradsight: {problem}" for problem in problems]
    chosen["probe"], problems = probe_options_from(table.get("interpreter"), table.get("probe"))
    return Options(**chosen), (*complaints, *problems)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_pause(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LONGEST_DEBOUNCE


_OWN: dict[Any, tuple[str, str, Any]] = {
    "enable": ("enable", "true or false", _is_flag),
    "run": ("run", "onType or onSave", lambda value: value in ("onType", "onSave")),
    "debounce": ("debounce", f"a number of milliseconds up to {LONGEST_DEBOUNCE}", _is_pause),
    "inlayHints": ("inlay_hints", "true or false", _is_flag),
    "codeLens": ("code_lens", "true or false", _is_flag),
    "scope": ("scope", "open or workspace", lambda value: value in ("open", "workspace")),
}
