"""A watch changes no bit of random programs, and whoever looks would see it if it did."""

from __future__ import annotations

import pytest
import torch

from gradsight.agent.fastlog import FastRecorder
from gradsight.agent.patches import Patches
from gradsight_dev.fuzz.grammar import generate
from gradsight_dev.fuzz.program import Program
from gradsight_dev.watch_equality import differences, places


def test_a_few_random_programs_are_the_same_under_a_watch() -> None:
    assert [what for seed in range(7_000, 7_012) for what in differences(generate(seed))] == []


def test_a_watch_that_changes_a_value_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(
        1, "made up", "import torch\nw = torch.ones(3, requires_grad=True)\n(w * 2).sum().backward()\n"
    )
    assert list(differences(program)) == []
    listen = FastRecorder.__torch_function__

    def meddle(
        self: FastRecorder, func: object, types: object, args: object = (), kwargs: object = None
    ) -> object:
        result = listen(self, func, types, args, kwargs)
        return result * 1.5 if func is torch.Tensor.mul else result

    monkeypatch.setattr(FastRecorder, "__torch_function__", meddle)
    assert list(differences(program)) == ["w.grad"]


def test_a_place_that_is_not_put_back_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(1, "made up", "import torch\n")
    left = torch.nn.Module.register_parameter
    kept: list[Patches] = []
    undo = Patches.undo
    monkeypatch.setattr(Patches, "undo", lambda self: kept.append(self))
    watched = [*differences(program)]
    for each in reversed(kept):
        undo(each)
    assert "Module.register_parameter is not put back" in watched
    assert torch.nn.Module.register_parameter is left


def test_every_place_of_a_watch_is_looked_at() -> None:
    names = {name for _, name in places()}
    assert {"_engine_run_backward", "__setattr__", "register_parameter", "excepthook", "run"} <= names
