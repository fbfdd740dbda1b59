"""Repairs that were tried on torch, and for how long that counts: until one of the functions they concern changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradsight.session.units import CodeUnit, lines_now

if TYPE_CHECKING:
    from gradsight.probe.trial import Trial


@dataclass(frozen=True, slots=True)
class Tried:
    """One repair of one finding, with what torch showed; `units` is the code it rests on."""

    code: str
    title: str
    trial: Trial
    units: tuple[CodeUnit, ...]


class TrialBook:
    """The repairs of a session that were tried, by path."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Tried]] = {}

    def record(self, path: str, tried: Tried) -> None:
        """Keep what a trial showed; the newest one counts."""
        others = [
            each
            for each in self._kept.get(path, [])
            if (each.title, each.units) != (tried.title, tried.units)
        ]
        self._kept[path] = [*others, tried]

    def forget(self, path: str) -> None:
        """A file was closed."""
        self._kept.pop(path, None)

    def about(self, path: str, text: str, code: str, line: int, title: str) -> Trial | None:
        """What is known about the repair with this title of the finding on a line of a text."""
        return next((each.trial for each in self._alive(path, text, code, line) if each.title == title), None)

    def good_titles(self, path: str, text: str, code: str, line: int) -> list[str]:
        """The repairs of a finding that torch agreed with."""
        return [each.title for each in self._alive(path, text, code, line) if each.trial.is_good]

    def _alive(self, path: str, text: str, code: str, line: int) -> list[Tried]:
        """The trials of a finding whose code is still what it was."""
        alive = []
        for tried in self._kept.get(path, ()):
            places = [lines_now(unit, text) for unit in tried.units] if tried.code == code else [None]
            if None not in places and any(line in place for place in places if place is not None):
                alive.append(tried)
        return alive

    def titled(self, path: str, text: str, code: str, line: int, title: str) -> str:
        """The title of an offer with what torch says about it."""
        trial = self.about(path, text, code, line, title)
        if trial is None:
            return title
        if trial.is_good:
            return f"{title} (verified on torch {'.'.join(trial.torch.split('.')[:2])})"
        return f"{title} (tried on torch {'.'.join(trial.torch.split('.')[:2])}: {trial.sentence})"
