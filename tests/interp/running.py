"""Programs that are analysed and run on torch: safe ones, and ones that torch refuses."""

from __future__ import annotations

import random
import sys
import traceback
from textwrap import dedent
from types import ModuleType

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source
from tests.interp.checking import PREAMBLE, announced, check


def seed() -> None:
    """Every program draws the same numbers in every run."""
    import torch

    random.seed(0)
    torch.manual_seed(0)


def safe(program: str) -> None:
    """GradSight is silent, and torch runs the program."""
    assert not announced(dedent(program).splitlines())
    check(program)
    run(program)


def refused(program: str, message: str) -> None:
    """GradSight speaks on the announced line, and torch raises there or when it goes on from there."""
    check(program)
    with pytest.raises(RuntimeError, match=message):
        run(program)


def codes(program: str) -> set[str]:
    """What GradSight says of the program, wherever it says it."""
    findings = analyze(Source("program.py", PREAMBLE + dedent(program))).findings
    return {finding.code for finding in findings if finding.severity in ("error", "warning")}


def run(program: str) -> None:
    text = PREAMBLE + dedent(program)
    seed()
    module = ModuleType("program")
    sys.modules["program"] = module
    try:
        exec(compile(text, "program.py", "exec"), module.__dict__)
    except AssertionError:
        line = traceback.extract_tb(sys.exc_info()[2])[-1].lineno or 1
        raise AssertionError(text.splitlines()[line - 1]) from None
    finally:
        del sys.modules["program"]


TRAIN = """
cell = nn.RNNCell(2, 2)
for _ in range(3):
    h = cell(torch.randn(1, 2), s.h)
    h.sum().backward()
    s.h = h
"""


def carried(definition: str, loop: str = TRAIN) -> None:
    """The program that keeps no graph is silent; without its `.detach()` the graph is carried over, and torch refuses."""
    safe(dedent(definition) + loop)
    text = (dedent(definition) + loop).replace(".detach()", "")
    assert "GS403" in codes(text)
    with pytest.raises(RuntimeError, match="second time"):
        run(text)


def cleared(definition: str, loop: str, clearing: str) -> None:
    """A cache that is cleared each round keeps no graph; one that is not, does."""
    safe(dedent(definition) + dedent(loop).replace("CLEAR", clearing))
    text = dedent(definition) + dedent(loop).replace("CLEAR", "pass")
    assert "GS403" in codes(text)
    with pytest.raises(RuntimeError, match="second time"):
        run(text)
