"""Detectors of what is masked, passed over or overwritten, each by itself: NaN behind `where`, freezes by a name that no part has."""

from __future__ import annotations

import ast

import pytest

from gradsight.detect.dropped_sums import DroppedSums
from gradsight.detect.freezes_by_name import FreezesByName
from gradsight.detect.masked_nans import MaskedNans
from gradsight.detect.shared_rows import SharedRows
from gradsight.model.trace import (
    Assigned,
    Augmented,
    Combined,
    ContainerMade,
    Frozen,
    PartsSorted,
    Stored,
    Used,
)
from gradsight.model.values import Seq
from tests.detect.staging import Stage


def masked(operator: str, number: float, in_arm: str, is_walked: bool = True) -> list[tuple[str, int]]:
    stage = Stage("x = f()\nn = g()\nm = n == 0\nq = x / n\ny = where(m, z, q)\nloss.backward()")
    x = stage.tensor("f()", "x", is_parameter=True)
    count, mask = stage.tensor("g()", "n"), stage.tensor("n == 0", "m")
    quotient = stage.tensor("x / n", "q", "div", (x,))
    assert quotient.node is not None
    quotient.node.operands, quotient.node.requires = [x, count], True
    quotient.node.walked = stage.at("loss.backward()") if is_walked else None
    zeros = stage.tensor("g()", "z")
    detector = MaskedNans(stage, stage.claims)
    stage.hears(detector, Combined(operator, count, number, mask, stage.find("n == 0")))
    arms = {"condition": mask, "input": zeros, "other": zeros, in_arm: quotient}
    return stage.hears(detector, Used(arms, stage.find("where(m, z, q)")), finish=True)


@pytest.mark.parametrize(
    ("operator", "number", "arm"), [("__eq__", 0, "other"), ("__gt__", 0, "input"), ("__lt__", 1e-6, "other")]
)
def test_a_quotient_masked_where_its_divisor_is_zero_is_told(operator: str, number: float, arm: str) -> None:
    assert masked(operator, number, arm) == [("gradient-is-nan", 5)]


@pytest.mark.parametrize(
    ("operator", "number", "arm"), [("__eq__", 0, "input"), ("__eq__", 3, "other"), ("__gt__", 0, "other")]
)
def test_one_that_is_used_there_is_not_told(operator: str, number: float, arm: str) -> None:
    assert masked(operator, number, arm) == []


def test_one_that_no_backward_passes_is_not_told() -> None:
    assert masked("__eq__", 0, "other", is_walked=False) == []


def sorted_by(text: str, *names: str, is_frozen: bool = False) -> list[tuple[str, int]]:
    stage = Stage(f"for name, p in net:\n    if {text}:\n        p.requires_grad_(False)\nf()")
    loop = next(node for node in ast.walk(stage.tree) if isinstance(node, ast.For))
    parts = [Seq("tuple", [name, stage.tensor("f()", "w", is_parameter=True)]) for name in names]
    detector = FreezesByName(stage, stage.claims)
    if is_frozen:
        stage.hears(detector, Frozen(parts[0].items[1], stage.at("p.requires_grad_(False)")))
    return stage.hears(detector, PartsSorted(loop, list(parts)), finish=True)


def test_a_freeze_that_no_name_fits_is_told() -> None:
    assert sorted_by('"attn" in name', "embed", "attention") == [("freezes-nothing", 2)]


def test_one_that_froze_something_or_asks_for_more_is_not_told() -> None:
    assert sorted_by('"embed" in name', "embed", "attention", is_frozen=True) == []
    assert sorted_by('"attn" in name and chosen(p)', "embed") == []
    assert sorted_by('"embed" not in name', "embed") == []


def repeated(fill: str) -> list[tuple[str, int]]:
    stage = Stage(f"rows = [[]] * 2\n{fill}")
    row = Seq("list", [])
    detector = SharedRows(stage, stage.claims)
    stage.hears(detector, ContainerMade(Seq("list", [row, row]), "repeat", stage.find("[[]] * 2")))
    return stage.hears(detector, Stored(stage.tensor(fill, "x"), stage.at(fill), row))


def test_what_is_put_into_one_of_repeated_lists_is_told_where_they_are_made() -> None:
    assert repeated("rows[0].append(x)") == [("alias-read-after-write", 1)]
    assert repeated("row.append(x)") == []


def overwritten(is_walked: bool) -> list[tuple[str, int]]:
    stage = Stage("for x in y:\n    loss = 0\n    loss += f(x)\n    loss = g(x)\nloss.backward()")
    weight = stage.tensor("g(x)", "w", is_parameter=True)
    first = stage.tensor("f(x)", "loss", "add", (weight,), shape=())
    second = stage.tensor("g(x)", "loss", "mul", (weight,), shape=())
    assert first.node is not None
    assert second.node is not None
    second.node.walked = stage.at("loss.backward()")
    first.node.walked = second.node.walked if is_walked else None
    detector = DroppedSums(stage, stage.claims)
    stage.hears(detector, Augmented(stage.find("loss += f(x)"), 0, first, first))
    stage.names["loss"] = second
    return stage.hears(detector, Assigned(stage.find("loss = g(x)"), 0), finish=True)


def test_a_sum_that_is_overwritten_before_its_backward_is_told() -> None:
    assert overwritten(is_walked=False) == [("term-unused", 4)]
    assert overwritten(is_walked=True) == []
