"""What an editor's user may choose about the probe: which interpreter runs the code, and within which limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """The choices for one folder.  Zero means no limit."""

    interpreter: str = ""
    """The Python that has the user's torch; empty: the first one on the PATH."""
    timeout: float = 60.0
    """Seconds."""
    memory: int = 8192
    """Megabytes."""
    steps: int = 3
    """Optimizer steps (or backward calls) after which a program is stopped cleanly."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    launcher: tuple[str, ...] = ()
    """Words that come before the interpreter: `nice -n 10`, `srun`, `uv run`."""
    allowed: bool = True
    """Whether the user trusts the code of this folder; the editor says so, it is no setting."""


def probe_options_from(interpreter: object, table: object) -> tuple[ProbeOptions, tuple[str, ...]]:
    """Options of the probe from what an editor sends, and a sentence for each that could not be used."""
    chosen: dict[str, Any] = {}
    complaints = []
    if isinstance(interpreter, str):
        chosen["interpreter"] = interpreter
    elif interpreter is not None:
        complaints.append("gradsight.interpreter: a path is expected; the default is used")
    if table is not None and not isinstance(table, Mapping):
        return ProbeOptions(**chosen), (*complaints, "gradsight.probe: a table is expected")
    for key, value in (table or {}).items():
        if value is None:
            continue
        if key not in _READERS:
            complaints.append(f"gradsight.probe: unknown option {key}")
            continue
        expected, read = _READERS[key]
        usable = read(value)
        if usable is None:
            complaints.append(f"gradsight.probe.{key}: {expected} is expected; the default is used")
        else:
            chosen[key] = usable
    return ProbeOptions(**chosen), tuple(complaints)


def _number(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and value >= 0 else None  # type: ignore[operator,arg-type]


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _words(value: object) -> tuple[str, ...] | None:
    is_list = isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value)
    return tuple(value) if is_list else None  # type: ignore[arg-type]


def _texts(value: object) -> dict[str, str] | None:
    if not isinstance(value, Mapping):
        return None
    is_fine = all(isinstance(key, str) and isinstance(text, str) for key, text in value.items())
    return dict(value) if is_fine else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


_READERS: dict[Any, tuple[str, Any]] = {
    "timeout": ("a number of seconds", _number),
    "memory": ("a number of megabytes", _count),
    "steps": ("a number of steps", _count),
    "args": ("a list of words", _words),
    "env": ("a table from name to text", _texts),
    "launcher": ("a list of words", _words),
    "allowed": ("true or false", _flag),
}
