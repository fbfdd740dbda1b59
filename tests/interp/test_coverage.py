"""Silence has a reason: what was not analysed is a gap with a kind and a place, and is counted by functions."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradsight.analysis import Analyser, analyze
from gradsight.interp.paths import entries
from gradsight.interp.tensors.training import Training
from gradsight.model.report import Coverage, Gap, Report
from gradsight.model.source import Source

TRAINS = """
import torch
from torch import nn

def first(model, loader, optimizer):
    for x in loader:
        model(x).sum().backward()
        optimizer.step()

def second(model, loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        y = torch.sigmoid(model(x))
        y *= 2
        y.sum().backward()
        optimizer.step()

def plain(a):
    return a
"""


def report_on(text: str, **modules: str) -> Report:
    sources = {name: Source(f"{name}.py", dedent(body)) for name, body in modules.items()}
    return analyze(Source("program.py", dedent(text)), None, lambda name, level, path: sources.get(name))


def gaps_of(report: Report, kind: str) -> list[Gap]:
    return [gap for gap in report.gaps if gap.kind == kind]


def test_functions_are_counted_and_what_does_nothing_is_analysed() -> None:
    report = report_on(TRAINS)
    assert report.coverage == Coverage(3, 0)
    assert {"GS501", "GS101"} <= {finding.code for finding in report.findings}


def test_functions_for_which_no_work_is_left_are_counted_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "SHARED_BUDGET", 1)
    monkeypatch.setattr(entries, "SHARED_PER_LINE", 0)
    report = report_on(TRAINS)
    assert report.coverage == Coverage(3, 2)
    (left_out,) = [gap for gap in gaps_of(report, "budget") if "second" in gap.reason]
    assert (left_out.line, left_out.reason) == (
        10,
        "`second` was not analysed: the limit of work for this file was reached",
    )


def test_path_that_runs_out_of_work_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "SCRIPT_BUDGET", 30)
    monkeypatch.setattr(entries, "PER_LINE", 0)
    report = report_on("import torch\nx = torch.ones(3)\n" + "x = x + 1\n" * 40)
    (gap,) = gaps_of(report, "budget")
    assert gap.line > 3
    assert "the limit of work was reached here" in gap.reason


def test_relative_import_of_what_is_not_there_is_a_gap_of_its_line() -> None:
    report = report_on("import torch\nfrom .nowhere import helper\n\nx = torch.ones(3)\n")
    assert [(gap.line, gap.reason) for gap in gaps_of(report, "import")] == [(2, "import of .nowhere.helper")]


def test_name_that_a_module_of_the_workspace_lacks_is_a_gap_where_it_is_used() -> None:
    report = report_on(
        "import torch\nfrom helper import absent\n\nx = absent(torch.ones(3))\n", helper="present = 1\n"
    )
    assert [gap.reason for gap in gaps_of(report, "import")] == ["absent is not in helper"]


def test_module_of_the_workspace_that_does_not_parse_is_named() -> None:
    report = report_on(
        "import torch\nfrom helper import f\n\nx = f(torch.ones(3))\n", helper="def f(:\n  (\n"
    )
    assert "helper does not parse" in {gap.reason for gap in gaps_of(report, "syntax")}


def test_part_that_does_not_parse_is_a_gap_of_its_line() -> None:
    report = report_on("import torch\n\ndef broken(:\n    pass\n\nx = torch.ones(3)\n")
    assert [gap.line for gap in gaps_of(report, "syntax")] == [3]


def test_import_that_costs_too_much_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradsight.interp.paths.shared_modules.PURSE", 20)
    heavy = "value = 0\n" + "for i in range(9):\n    value = value + 1\n" * 20
    report = report_on("import torch\nfrom heavy import value\n\nx = torch.ones(3) * value\n", heavy=heavy)
    assert [(gap.line, gap.reason) for gap in gaps_of(report, "budget")] == [
        (4, "the limit of work was reached while heavy was imported")
    ]


def test_fault_of_ours_costs_one_entry_and_the_others_speak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADSIGHT_STRICT", raising=False)
    whole = Training.optimizer_method

    def failing(self: Training, optimizer: object, name: str, *rest: object) -> object:
        if name == "zero_grad":
            raise ZeroDivisionError
        return whole(self, optimizer, name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Training, "optimizer_method", failing)
    report = report_on(TRAINS)
    assert [finding.code for finding in report.findings] == ["GS501"]
    (gap,) = gaps_of(report, "internal")
    assert (gap.line, gap.reason) == (10, "ZeroDivisionError in `second`")


def test_edit_leaves_the_count_that_a_fresh_analysis_has() -> None:
    from gradsight.analysis import Analyser

    analyser = Analyser()
    text = dedent(TRAINS)
    for edited in (text, text.replace("return a", "return a + 1"), text):
        kept = analyser.analyze(Source("program.py", edited))
        assert kept.coverage == analyze(Source("program.py", edited)).coverage
        assert kept.gaps == analyze(Source("program.py", edited)).gaps


def test_function_that_a_caller_had_no_work_left_for_is_executed_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entries, "ENTRY_BUDGET", 20)
    monkeypatch.setattr(entries, "ENTRY_PER_LINE", 1)
    monkeypatch.setattr(entries, "TRAINING", 20)
    call = "first(nn.Linear(2, 1), loader, optimizer)"
    program = f"{TRAINS}\ndef setup(loader, optimizer):\n    {call}\n"
    report = report_on(program)
    assert "the limit of work was reached here" in gaps_of(report, "budget")[0].reason
    assert "GS501" in {finding.code for finding in report.findings}


MADE_FOR_A_METHOD = """
import functools
from torch import nn

def noted(function):
    @functools.wraps(function)
    def wrapper(self, *args):
        return function(self, *args)
    return wrapper

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = [nn.Linear(4, 4)]

    @noted
    def forward(self, x):
        y = self.parts[0](x).sigmoid()
        y *= 2
        return y

class Plain:
    def __init__(self):
        self.layers = [nn.Linear(4, 4)]

    def apply(self, x):
        y = self.layers[0](x).sigmoid()
        y *= 2
        y.sum().backward()
"""


def test_an_object_that_was_made_for_a_method_is_not_made_once_more_for_its_own_sake() -> None:
    analyser = Analyser()
    report = analyser.analyze(Source("program.py", dedent(MADE_FOR_A_METHOD)))
    assert [finding.code for finding in report.findings].count("GS101") == 2
    entries_of = [name.rstrip() for _, name in analyser._memories["program.py"].records]
    assert sorted(entries_of) == ["Net.forward", "Plain.apply"]
    assert report.coverage == Coverage(5, 0)
