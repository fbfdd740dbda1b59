"""A path that is over leaves nothing behind that only a collector could find."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest

from gradsight.analysis import Analyser
from gradsight.interp.paths.assembly import Machine
from gradsight.model import Source
from gradsight.model.values import Instance

PROGRAM = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, size, deep):
        super().__init__()
        self.first = nn.Linear(size, size)
        if deep:
            self.second = nn.Linear(size, size)

    def rows(self, x):
        for row in x:
            try:
                yield row
            finally:
                self.last = row

    def forward(self, x, mask=None):
        if mask is not None:
            x = x * mask
        first = next(self.rows(x))
        y = self.first(x).exp()
        y += first
        return y
"""


def test_what_a_path_made_goes_without_a_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    gc.collect()
    gc.disable()
    try:
        report = Analyser().analyze(Source("program.py", PROGRAM))
        alive = [one for one in gc.get_objects() if type(one) is Machine and one.context != "script"]
        objects = [one for one in gc.get_objects() if type(one) is Instance]
    finally:
        gc.enable()
    assert [finding.code for finding in report.findings] == ["GS101"]
    assert not raised
    assert not alive
    assert not any(one.attributes for one in objects)


def test_the_next_analysis_is_the_same() -> None:
    analyser = Analyser()
    first = analyser.analyze(Source("program.py", PROGRAM))
    edited = Source("program.py", PROGRAM.replace("y += first", "y += first * 2"))
    assert [finding.code for finding in analyser.analyze(edited).findings] == ["GS101"]
    assert analyser.analyze(Source("program.py", PROGRAM)) == first
