"""Detectors are told of those assignments alone whose text concerns them, and nothing is lost by it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from gradsight.analysis import analyze
from gradsight.detect import listening
from gradsight.detect.listening import Detectors, concerned
from gradsight.model import Source

FIXTURES = Path(__file__).parents[2] / "fixtures" / "programs"
PROGRAMS = sorted(FIXTURES.glob("*.py"))[::9]


def everybody(statement: ast.Assign, hearers: Any, listed: Any) -> Any:
    return hearers


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_whoever_is_not_concerned_would_have_made_nothing_of_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(path.name, path.read_text(encoding="utf-8"))
    told_some = analyze(source)
    monkeypatch.setattr(listening, "concerned", everybody)
    assert analyze(source) == told_some


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("self.size = config.size", {"SnapshotAliases"}),
        ("self.sizes = [1, 2]", {"SnapshotAliases"}),
        ("a[0], a[1] = a[1], a[0]", {"ModuleAliases", "ReadsAfterWrite"}),
        (
            "target = self.model",
            {"ModuleAliases", "SnapshotAliases", "PlaceAliases", "LostUpdates", "DroppedSums"},
        ),
        ("size = 3", {"LostUpdates", "DroppedSums"}),
    ],
)
def test_the_text_says_whom_an_assignment_concerns(text: str, names: set[str]) -> None:
    statement: Any = ast.parse(text).body[0]
    listener = Detectors(None)  # type: ignore[arg-type]
    hearers = concerned(statement, listener.hearers_of(listening.Assigned), listener.listed)
    assert {type(listener.listed[place]).__name__ for place, _ in hearers} == names
