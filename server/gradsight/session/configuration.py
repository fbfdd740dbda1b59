"""Settings as users write them: `[tool.gradsight]` of the nearest pyproject.toml, or the options of an editor.

A key or value that is not understood is reported once, in a sentence, and the default is used instead.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from gradsight.model.events import SEVERITY_ORDER
from gradsight.model.finding import Severity
from gradsight.model.settings import Settings
from gradsight.rules import ALL
from gradsight.session import disk
from gradsight.session.reading import Unreadable, decode, read_bytes

SECTION = b"tool.gradsight"
FILE = "pyproject.toml"
LARGEST = 1_000


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings, the file they come from (empty: none), and what in it was not understood: the settings are then not all
    those that somebody wrote."""

    settings: Settings = field(default_factory=Settings)
    path: str = ""
    complaints: tuple[str, ...] = ()


class BadValueError(ValueError):
    """A value that cannot be used; its text says what was expected."""


def configuration_for(path: str) -> Configuration:
    """The configuration that holds for a file or folder: of the nearest pyproject.toml with a section for us."""
    folder = path if disk.is_folder(path) else os.path.dirname(path)
    while True:
        candidate = os.path.join(folder, FILE)
        if _may_have_section(candidate):
            return read_configuration(candidate)
        above = os.path.dirname(folder)
        if above == folder:
            return Configuration()
        folder = above


def read_configuration(path: str) -> Configuration:
    """The configuration of one pyproject.toml."""
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        section = toml.loads(disk.read(path).decode("utf-8")).get("tool", {}).get("gradsight", {})
    except OSError as problem:
        return _unreadable(path, (problem.strerror or "unreadable").lower())
    except (toml.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        return _unreadable(path, f"not valid TOML: {problem}")
    except AttributeError:
        section = None
    if not isinstance(section, dict):
        return _unreadable(path, "tool.gradsight is not a table")
    settings, complaints = settings_from(section)
    if settings.models:
        settings = located(settings, os.path.dirname(path))
        complaints += problems_of_models(settings.models, os.path.dirname(path))
    return Configuration(settings, path, tuple(f"{path}: {text}" for text in complaints))


def _unreadable(path: str, reason: str) -> Configuration:
    return Configuration(path=path, complaints=(f"{path}: {reason}",))


def located(settings: Settings, folder: str) -> Settings:
    """Settings whose own models are found from anywhere; the files that hold them are not checked themselves."""
    models = os.path.normpath(os.path.join(folder, settings.models))
    inside = os.path.relpath(models, folder).replace(os.sep, "/")
    exclude = settings.exclude if inside.startswith(".") else (*settings.exclude, f"/{inside}/")
    return replace(settings, models=models, exclude=exclude)


@lru_cache(maxsize=16)
def problems_of_models(models: str, folder: str) -> tuple[str, ...]:
    """What is wrong with the user's own models, a sentence for each file; nothing of them is executed."""
    name = os.path.relpath(models, folder)
    if not disk.is_folder(models):
        return (f"models: there is no folder {name}",)
    problems = []
    for inside, _, files in sorted(os.walk(models)):
        for file in sorted(file for file in files if file.endswith(".py")):
            path = os.path.join(inside, file)
            problem = _syntax_problem(path)
            if problem:
                problems.append(f"models: {os.path.relpath(path, folder)}, {problem}")
    return tuple(problems)


def _syntax_problem(path: str) -> str:
    import ast

    data = read_bytes(path)
    text = decode(data) if isinstance(data, bytes) else data
    if isinstance(text, Unreadable):
        return text.reason
    try:
        ast.parse(text)
    except SyntaxError as problem:
        return f"line {problem.lineno or 1}: {problem.msg}"
    except ValueError as problem:
        return f"line 1: {problem}"
    return ""


def settings_from(table: Mapping[str, Any], base: Settings | None = None) -> tuple[Settings, tuple[str, ...]]:
    """Settings changed by a table of options, and a sentence for each option that could not be used."""
    settings = base if base is not None else Settings()
    complaints = []
    for key, value in table.items():
        parse = PARSERS.get(key)
        if parse is None:
            complaints.append(f"unknown option {key}{_nearest(key, PARSERS)}")
            continue
        try:
            settings = replace(settings, **{FIELDS.get(key, key): parse(value)})
        except BadValueError as problem:
            complaints.append(f"{key}: {problem}; the default is used")
    return settings, tuple(complaints)


def code_prefix(text: str) -> str:
    """The code prefix that a user's word stands for: `GS1`, `gs101`, `ALL`, or the name of a rule."""
    word = text.strip()
    if word.upper() == "ALL":
        return "GS"
    for rule in ALL:
        if rule.name == word.lower():
            return rule.code
    if word and any(rule.code.startswith(word.upper()) for rule in ALL):
        return word.upper()
    names = [name for rule in ALL for name in (rule.code, rule.name)]
    raise BadValueError(f"no rule has the code or name {word!r}{_nearest(word, names)}")


def _prefixes(value: object) -> tuple[str, ...]:
    return tuple(code_prefix(text) for text in _strings(value))


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(text, str) for text in value):
        raise BadValueError("a list of strings is expected")
    return tuple(value)


def _folder(value: object) -> str:
    if not isinstance(value, str):
        raise BadValueError("the name of a folder is expected")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadValueError("true or false is expected")
    return value


def _size(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LARGEST:
        raise BadValueError(f"a number of megabytes up to {LARGEST} is expected")
    return float(value)


def _per_file(value: object) -> dict[str, tuple[str, ...]]:
    """Codes by pattern of files."""
    if not isinstance(value, Mapping):
        raise BadValueError("a table from patterns of files to lists of codes is expected")
    return {str(pattern): _prefixes(codes) for pattern, codes in value.items()}


def _severities(value: object) -> dict[str, Severity]:
    """Severity by rule code; a prefix or a name stands for every rule it matches."""
    if not isinstance(value, Mapping):
        raise BadValueError("a table from code to severity is expected")
    chosen: dict[str, Severity] = {}
    for word, severity in sorted(value.items(), key=lambda item: len(str(item[0]))):
        if severity not in SEVERITY_ORDER:
            raise BadValueError(f"{severity!r} is not a severity; choose from {', '.join(SEVERITY_ORDER)}")
        prefix = code_prefix(str(word))
        chosen |= {rule.code: severity for rule in ALL if rule.code.startswith(prefix)}
    return chosen


PARSERS: dict[str, Callable[[object], Any]] = {
    "select": _prefixes,
    "ignore": _prefixes,
    "severity": _severities,
    "hints": _flag,
    "exclude": _strings,
    "perFileIgnores": _per_file,
    "per-file-ignores": _per_file,
    "maxMegabytes": _size,
    "max-megabytes": _size,
    "models": _folder,
}
# Names of the model that users write in another way.
FIELDS = {
    "maxMegabytes": "max_megabytes",
    "max-megabytes": "max_megabytes",
    "perFileIgnores": "per_file_ignores",
    "per-file-ignores": "per_file_ignores",
}


def _may_have_section(path: str) -> bool:
    """Whether a file speaks of us, or is there and cannot be read."""
    try:
        return SECTION in disk.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return disk.exists(path)


def _nearest(word: str, known: Any) -> str:
    nearest = nearest_of(word, list(known))
    return f": did you mean {nearest[0]}?" if nearest else ""


def nearest_of(word: str, known: list[str], wanted: int = 1, cutoff: float = 0.6) -> list[str]:
    """The words most like one; of those that are equally like it, the ones that agree in more places: GS1O1 is GS101."""
    from difflib import SequenceMatcher, get_close_matches

    def likeness(other: str) -> tuple[float, int]:
        same = sum(one == another for one, another in zip(word, other, strict=False))
        return SequenceMatcher(None, other, word).ratio(), same

    return sorted(get_close_matches(word, known, n=20, cutoff=cutoff), key=likeness, reverse=True)[:wanted]
