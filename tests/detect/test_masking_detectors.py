"""Detectors of what is masked or passed over, each by itself: NaN behind `where`, and freezes by a name that no part has."""

from __future__ import annotations

import ast

import pytest

from gradsight.detect.freezes_by_name import FreezesByName
from gradsight.detect.masked_nans import MaskedNans
from gradsight.model.trace import Combined, Frozen, PartsSorted, Used
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
