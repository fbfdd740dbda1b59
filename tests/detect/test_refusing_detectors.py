"""Detectors of optimizers that refuse gradients, of broken ties, and of losses over pairs, each on a few facts."""

from __future__ import annotations

import pytest

from gradsight.detect.broadcast_losses import BroadcastLosses
from gradsight.detect.broken_ties import BrokenTies
from gradsight.detect.sparse_gradients import SparseGradients
from gradsight.model.trace import Applied, AttributeSet, Stepping, Used
from gradsight.model.values import Layer, ModuleState
from tests.detect.staging import Stage, run_of


@pytest.mark.parametrize(
    ("name", "told"), [("Adam", [("optimizer-refused", 2)]), ("SparseAdam", []), ("SGD", [])]
)
def test_a_sparse_gradient_is_told_where_its_optimizer_steps(name: str, told: list[tuple[str, int]]) -> None:
    stage = Stage("loss = words(ids)\nopt.step()")
    weight = stage.tensor("words", "words.weight", is_parameter=True)
    weight.grad = stage.tensor("loss", "")
    optimizer = stage.optimizer("opt.step()", weight)
    optimizer.path = f"torch.optim.{name}"
    call = stage.find("words(ids)")
    looked_up = Applied("Embedding", None, [weight], None, call, {"sparse": True})
    detector = SparseGradients(stage, stage.claims)
    step = Stepping(optimizer, stage.at("opt.step()"))
    assert stage.hears(detector, Used({"weight": weight}, call), looked_up, step) == told


def test_a_new_parameter_in_one_of_two_places_breaks_the_tie() -> None:
    stage = Stage("head.weight = table.weight\nhead.weight = fresh\nloss.backward()")
    shared = stage.tensor("table.weight", "table.weight", is_parameter=True)
    fresh = stage.tensor("fresh", "fresh", is_parameter=True)
    table, head = (Layer(name, {}, None) for name in ("nn.Embedding", "nn.Linear"))
    for layer in (table, head):
        layer.module, layer.attributes = ModuleState(), {"weight": shared}
    stage.modules_made = [table]
    detector = BrokenTies(stage, stage.claims)
    tied = AttributeSet(head, "weight", shared, None, stage.find("head.weight = table.weight"))
    stage.hears(detector, tied)
    head.attributes["weight"] = fresh
    broken = AttributeSet(head, "weight", fresh, shared, stage.find("head.weight = fresh"))
    run_of(stage, "loss.backward()", stage.tensor("loss", "loss"), shared, fresh)
    assert stage.hears(detector, broken, finish=True) == [("tie-broken", 2)]


@pytest.mark.parametrize(
    ("shape", "told"), [((8,), [("loss-broadcast", 1)]), ((8, 1), []), ((1,), []), (None, [])]
)
def test_a_column_and_a_row_are_told_where_they_are_compared(
    shape: tuple[int, ...] | None, told: list[tuple[str, int]]
) -> None:
    stage = Stage("loss = mse_loss(pred, target)")
    pred = stage.tensor("pred", "pred", shape=(8, 1))
    target = stage.tensor("target", "target", shape=shape, requires_grad=False)
    compared = Applied("mse_loss", pred, [pred, target], None, stage.find("mse_loss(pred, target)"))
    assert stage.hears(BroadcastLosses(stage, stage.claims), compared) == told
