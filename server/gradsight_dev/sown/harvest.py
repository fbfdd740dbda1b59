"""What the engine says of a sown edit that it does not say of the file as it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gradsight_dev.injected.catalogue import Edit, Origin, Target
from gradsight_dev.injected.edits import Row, edited, rows_of
from gradsight_dev.injected.scoring import ALARM, MISSED, Alarm, alarms, known, result_of
from gradsight_dev.sown.fields import half_of, users_of
from gradsight_dev.sown.sowing import sown

if TYPE_CHECKING:
    from gradsight.analysis import Analyser

MOST_USERS = 2


@dataclass(frozen=True, slots=True)
class Reaped:
    """What became of one edit of one file of a repository."""

    repository: str
    path: str
    edit: Edit
    result: str
    alarms: tuple[Alarm, ...]

    @property
    def half(self) -> str:
        return half_of(self.repository)


def reap(path: Path, repository: Path, only: str = "", verdict: str = "") -> Iterator[Reaped]:
    """Sow into one file, and score each edit: in the file alone, and where that is silent, through files that import it."""
    from gradsight.analysis import Analyser

    with path.open(encoding="utf-8", newline="") as file:
        text = file.read()
    place = path.relative_to(repository).as_posix()
    edits = [one for one in sown(text, place) if only in one.name and verdict in ("", one.verdict)]
    if not edits:
        return
    analyser = Analyser()
    origin = Origin("folder", repository.name, "")
    alone = Target(origin, place, "", "", (), tuple(edits))
    before: set[tuple[str, str, int | None]] | None = None
    users: list[Path] | None = None
    beside: dict[Path, set[tuple[str, str, int | None]]] = {}
    for edit in edits:
        if before is None:
            before = _said(alone, repository, rows_of(text), analyser)
        rows = edited(text, edit.changes)
        new = tuple(one for one in alarms(alone, repository, rows, analyser) if known(one) not in before)
        result = result_of(alone, edit, rows, new)
        if result == MISSED:
            users = users_of(path, repository)[:MOST_USERS] if users is None else users
            for user in users:
                through = Target(origin, place, "", "", (user.relative_to(repository).as_posix(),), ())
                if user not in beside:
                    beside[user] = _said(through, repository, rows_of(text), analyser)
                new = tuple(
                    one
                    for one in alarms(through, repository, rows, analyser)
                    if known(one) not in beside[user]
                )
                result = result_of(alone, edit, rows, new)
                if result != MISSED:
                    break
        yield Reaped(repository.name, place, edit, result, new)


def _said(
    target: Target, root: Path, rows: list[Row], analyser: Analyser
) -> set[tuple[str, str, int | None]]:
    return {known(one) for one in alarms(target, root, rows, analyser)}


__all__ = ["ALARM", "Reaped", "reap"]
