"""Terms that are zero everywhere and parts that are mixed in place, each detector tried alone by a few facts."""

from __future__ import annotations

import pytest

from gradsight.detect.mixed_parts import MixedParts
from gradsight.detect.zero_terms import ZeroTerms
from gradsight.model.trace import Backward, Wrote
from tests.detect.staging import Stage, run_of


def two_terms(hands_back_zeros: bool) -> list[tuple[str, int]]:
    stage = Stage("h = f(w)\nr = h.round()\nloss = h.mean() + r.mean()\nloss.backward()")
    w = stage.tensor("f(w)", "w", is_parameter=True)
    h = stage.tensor("f(w)", "h", "mul", (w,))
    r = stage.tensor("h.round()", "r", "round", (h.node,))
    assert r.node is not None
    r.node.zero = hands_back_zeros
    fit = stage.tensor("h.mean()", "fit", "mean", (h.node,))
    term = stage.tensor("r.mean()", "term", "mean", (r.node,))
    loss = stage.tensor("h.mean() + r.mean()", "loss", "add", (fit.node, term.node))
    stage.optimizers = [stage.optimizer("f(w)", w)]
    return stage.hears(ZeroTerms(stage, stage.claims), Backward(run_of(stage, "loss.backward()", loss, w)))


def test_a_term_that_is_zero_everywhere_is_told() -> None:
    assert two_terms(hands_back_zeros=True) == [("term-cut", 2)]
    assert two_terms(hands_back_zeros=False) == []


def mixed(first: str, second: str) -> list[tuple[str, int]]:
    stage = Stage(f"{first}\n{second}")
    q = stage.tensor("q", "q", "mul")
    detector = MixedParts(stage, stage.claims)
    for statement in (first, second):
        write = stage.written(q, statement, "copy_")
        stage.hears(detector, Wrote(q, "copy_", write.site, [], None, write))
    return stage.hears(detector)


def test_halves_that_are_mixed_one_after_the_other_are_told() -> None:
    first, second = "q[:2] = q[:2] * c - q[2:] * s", "q[2:] = q[2:] * c + q[:2] * s"
    assert mixed(first, second) == [("alias-read-after-write", 2)]


@pytest.mark.parametrize(
    "second",
    ["q[2:] = q[2:] * c + old * s", "q[2:] = q[2:] * c + q[:2] * t", "q[:2] = q[:2] * c - q[2:] * s"],
)
def test_parts_that_are_mixed_otherwise_are_not_told(second: str) -> None:
    assert mixed("q[:2] = q[:2] * c - q[2:] * s", second) == []
