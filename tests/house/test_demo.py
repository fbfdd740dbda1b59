"""The demo plays what is mounted, and its examples are there."""

from __future__ import annotations

import pytest

from gradsight_dev import demo
from tests.house.tree import ROOT


def test_the_example_is_shipped() -> None:
    assert (ROOT / demo.EXAMPLE).is_file()


def test_a_stage_without_its_command_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "mounted_commands", lambda: {"facts": ""})
    assert demo.Stage("known", ("facts exp",)).is_mounted()
    assert not demo.Stage("unknown", ("facts exp", "dance")).is_mounted()


def test_a_call_that_ends_otherwise_than_told_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    assert demo.play(demo.Stage("wrong", ("no-such-command",))) == ["no-such-command"]
    assert demo.play(demo.Stage("right", ("--version",))) == []
    assert "$ gradsight --version" in capfd.readouterr().out
