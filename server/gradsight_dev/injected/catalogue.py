"""The sets in `sets/`: one file of JSON per source, read into frozen data.  A set holds places and tokens, no source text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradsight_dev.injected.edits import Change, Dropped, Inserted, Moved, Replaced

SETS = Path(__file__).parent / "sets"
_CHANGES: Mapping[str, type[Change]] = {
    "replace": Replaced,
    "drop": Dropped,
    "insert": Inserted,
    "move": Moved,
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where files come from: a wheel of a package, or a commit of a public repository."""

    kind: str
    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit: what it is, where, on which lines (of the original, beside those it touches) a finding is right, and why.

    `also_in` holds such places in other files, as `path:line`.  `label` is `run` when torch was asked, `argued` when the
    reason is all there is.
    """

    name: str
    verdict: str
    kind: str
    changes: tuple[Change, ...]
    also: tuple[int, ...]
    why: str
    label: str
    also_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """One file with its edits; `through` are files that are analysed too, because they use this one."""

    origin: Origin
    path: str
    sha256: str
    world: str
    through: tuple[str, ...]
    edits: tuple[Edit, ...]


def read_sets(folder: Path = SETS) -> list[Target]:
    """All files with edits, in the order of their sets."""
    return [target for path in sorted(folder.glob("*.json")) for target in read_set(path)]


def read_set(path: Path) -> list[Target]:
    """The files of one set."""
    data = json.loads(path.read_text(encoding="utf-8"))
    origin = Origin(data["kind"], data["name"], data["version"])
    return [_target(origin, file) for file in data["files"]]


def write_set(path: Path, targets: Iterable[Target]) -> None:
    """Write a set, one edit per line."""
    targets = list(targets)
    origin = targets[0].origin
    files = [
        "  {"
        + _fields({"path": one.path, "sha256": one.sha256, "world": one.world, "through": list(one.through)})
        + ', "edits": [\n'
        + ",\n".join("   " + json.dumps(_edit_data(edit)) for edit in one.edits)
        + "\n  ]}"
        for one in targets
    ]
    head = _fields({"kind": origin.kind, "name": origin.name, "version": origin.version})
    path.write_text("{" + head + ',\n "files": [\n' + ",\n".join(files) + "\n]}\n", encoding="utf-8")


def _target(origin: Origin, data: dict[str, Any]) -> Target:
    edits = tuple(_edit(one) for one in data["edits"])
    return Target(origin, data["path"], data["sha256"], data["world"], tuple(data["through"]), edits)


def _edit(data: dict[str, Any]) -> Edit:
    changes = tuple(_change(one) for one in data["changes"])
    return Edit(
        data["name"],
        data["verdict"],
        data["kind"],
        changes,
        tuple(data["also"]),
        data["why"],
        data["label"],
        tuple(data.get("also_in", ())),
    )


def _change(data: dict[str, Any]) -> Change:
    fields = {key: value for key, value in data.items() if key != "op"}
    return _CHANGES[data["op"]](**fields)


def _edit_data(edit: Edit) -> dict[str, Any]:
    names = {kind: name for name, kind in _CHANGES.items()}
    changes = [
        {"op": names[type(change)], **{slot: getattr(change, slot) for slot in change.__slots__}}
        for change in edit.changes
    ]
    elsewhere = {"also_in": list(edit.also_in)} if edit.also_in else {}
    return {
        "name": edit.name,
        "verdict": edit.verdict,
        "kind": edit.kind,
        "changes": changes,
        "also": list(edit.also),
        **elsewhere,
        "why": edit.why,
        "label": edit.label,
    }


def _fields(data: dict[str, Any]) -> str:
    return json.dumps(data)[1:-1]
