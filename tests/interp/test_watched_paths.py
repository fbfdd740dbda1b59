"""Hovers listen to the trace as detectors do: a watched path tells of single names and operators, no other path does."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Any

import pytest

from gradsight.analysis import Analyser, analyze
from gradsight.detect import Detectors
from gradsight.interp.path_state import Deaf, Program
from gradsight.interp.paths.assembly import Machine
from gradsight.interp.paths.name_observer import NameObserver, Onlookers
from gradsight.model.source import Source
from gradsight.model.trace import AbsentGradUsed, Fact, WriteRefused, looks
from gradsight.model.values import PythonModule
from gradsight.ops.table import shipped

LOOKS = {kind for _, kind in inspect.getmembers(looks, inspect.isclass) if kind.__module__ == looks.__name__}
PROGRAM = Source(
    "program.py",
    """import torch
from torch.utils.checkpoint import checkpoint


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, given):
        return given * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def work(weight):
    if unknown(weight):
        print(weight)
    for _ in range(3):
        weight = Doubled.apply(weight).exp()
    return checkpoint(torch.sin, weight, use_reentrant=False)


start = torch.ones(3, requires_grad=True)
work(start).sum().backward()
""",
)


def path_of(audience: Deaf) -> Machine:
    return Machine(Program(shipped(), audience), PythonModule("__main__", "file.py"), [], 100)


def test_an_analysis_is_told_nothing_about_single_names(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = collected(monkeypatch, Detectors)
    analyze(PROGRAM)
    assert heard
    assert not heard & LOOKS


def test_a_hover_is_told_everything_there_is_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    analyser = Analyser()
    analyser.analyze(PROGRAM)
    heard = collected(monkeypatch, NameObserver)
    assert analyser.cards(PROGRAM, 1, PROGRAM.text.count("\n"))
    assert heard >= LOOKS


def test_the_onlooker_hears_each_kind_of_look() -> None:
    observer = path_of(Onlookers()).listener
    assert isinstance(observer, NameObserver)
    # Behind a write that torch refuses, or a gradient that is None, nothing is seen.
    assert set(observer.handlers) - {WriteRefused, AbsentGradUsed} == LOOKS


def test_what_is_tried_out_is_heard_by_onlookers_alone() -> None:
    for audience in (Onlookers(), Deaf()):
        path = path_of(audience)
        before = path.tell
        with path.aside():
            assert (path.tell == before) is audience.watches
        assert path.tell == before


def test_a_place_is_left_even_if_what_happens_there_fails() -> None:
    path = path_of(Onlookers())
    observer = path.listener
    assert isinstance(observer, NameObserver)
    with suppress(ValueError), path.inside("checkpoint"):
        assert observer.places["checkpoint"] == 1
        raise ValueError
    assert observer.places["checkpoint"] == 0


def collected(monkeypatch: pytest.MonkeyPatch, listener: type[Detectors] | type[NameObserver]) -> set[type]:
    """The kinds of facts that such listeners hear from now on."""
    heard: set[type] = set()
    hear = listener.hear

    def note(self: Any, fact: Fact) -> None:
        heard.add(type(fact))
        hear(self, fact)

    monkeypatch.setattr(listener, "hear", note)
    return heard
