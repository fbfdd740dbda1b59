"""What is missing on one path of an entry, and there on another."""

from __future__ import annotations

from types import SimpleNamespace

from gradsight.detect.claims import Claims
from gradsight.detect.missing_claims import PathsTogether
from tests.detect.staging import Stage


def path(stage: Stage, granted: str = "", **names: str) -> SimpleNamespace:
    """What was claimed on one path: a cut in the second line, unless another place was granted what is missing."""
    claims = Claims(stage)
    if granted:
        claims.granted.add(("path-cut", granted))
    else:
        claims.add("path-cut", stage.at("y.detach()"), [], cut="detach", **names)
    return SimpleNamespace(claims=claims)


def test_a_cut_does_not_stand_if_another_path_feeds_what_is_behind_it() -> None:
    stage = Stage("y = act(x)\nloss = y.detach()\n")
    together = PathsTogether()
    together.add(path(stage, granted_at="step act"), set())
    assert [event.kind for event in together.conclusions()] == ["path-cut"]
    together.add(path(stage, granted="step act"), set())
    assert not together.conclusions()


def test_a_cut_before_parameters_that_are_known_stands() -> None:
    stage = Stage("y = act(x)\nloss = y.detach()\n")
    together = PathsTogether()
    together.add(path(stage), set())
    together.add(path(stage, granted="step act"), set())
    assert [event.kind for event in together.conclusions()] == ["path-cut"]
