"""Detectors of what is forgotten, each by itself: totals that are only logged, plain weights, writes into copies, repeated layers."""

from __future__ import annotations

import pytest

from gradsight.detect.even_softmaxes import EvenSoftmaxes
from gradsight.detect.forgotten_leaves import ForgottenLeaves
from gradsight.detect.logged_totals import LoggedTotals
from gradsight.detect.lost_writes import LostWrites
from gradsight.detect.repeated_modules import RepeatedModules
from gradsight.model.trace import (
    Applied,
    Assigned,
    Backward,
    Declared,
    GradRead,
    LayerMade,
    ResultDropped,
    Stepped,
)
from gradsight.model.values import Layer, ModuleState
from tests.detect.staging import Stage, run_of
from tests.detect.test_training_detectors import stepped

# -- totals that are only logged ---------------------------------------------------------------------------------------------


def logged(last: str, *walked: str) -> list[tuple[str, int]]:
    stage = Stage(f"fit = f()\naux = g()\ntotal = fit + aux\nfit.backward()\nopt.step()\n{last}")
    w, v = (stage.tensor("opt", label, is_parameter=True) for label in "wv")
    fit = stage.tensor("f()", "fit", "mean", (w,), shape=())
    aux = stage.tensor("g()", "aux", "mean", (v,), shape=())
    total = stage.tensor("fit + aux", "total", "add", (fit.node, aux.node), shape=())
    stage.names["total"] = total
    optimizer = stage.optimizer("opt.step()", w, v)
    detector = LoggedTotals(stage, stage.claims)
    stage.hears(detector, Assigned(stage.find("total = fit + aux"), 0))
    run = run_of(stage, "fit.backward()", fit, w)
    stage.hears(detector, Backward(run))
    for one in (fit, aux):
        if one.label in walked and one.node is not None:
            one.node.walked = run.site
    return stage.hears(detector, Stepped(optimizer, stage.at("opt.step()")), finish=True)


def test_a_total_of_which_one_term_is_differentiated_is_told() -> None:
    assert logged("print(total.item())", "fit") == [("term-unused", 3)]


@pytest.mark.parametrize(
    ("last", "walked"), [("total.backward()", ("fit",)), ("print(total.item())", ("fit", "aux"))]
)
def test_one_that_is_used_or_whose_terms_are_all_differentiated_is_not_told(
    last: str, walked: tuple[str, ...]
) -> None:
    assert logged(last, *walked) == []


# -- plain weights that no optimizer holds -----------------------------------------------------------------------------------


def forgotten(rounds: int, is_read: bool = False) -> list[tuple[str, int]]:
    stage = Stage("v = made()\nopt = SGD([w])\nloss.backward()\nopt.step()")
    w, v = stage.tensor("w", "w"), stage.tensor("made()", "v")
    w.leaf_made = v.leaf_made = True
    optimizer = stage.optimizer("SGD([w])", w)
    detector = ForgottenLeaves(stage, stage.claims)
    stage.hears(detector, Declared(v, v.site))
    if is_read:
        stage.hears(detector, GradRead(v, v.site, None))
    for _ in range(rounds):
        run_of(stage, "loss.backward()", stage.tensor("loss", "loss", "mean", (w, v)), w, v)
        stepped(stage, optimizer, "opt.step()")
    return stage.hears(detector, finish=True)


def test_a_weight_beside_those_of_the_optimizer_is_told() -> None:
    assert forgotten(2) == [("parameters-not-optimized", 2)]


@pytest.mark.parametrize(("rounds", "is_read"), [(1, False), (2, True)])
def test_one_that_is_seen_once_or_whose_gradient_is_read_is_not_told(rounds: int, is_read: bool) -> None:
    assert forgotten(rounds, is_read) == []


# -- writes into copies --------------------------------------------------------------------------------------------------------


def dropped(statement: str, made: str, shares: bool = False) -> list[tuple[str, int]]:
    stage = Stage(statement)
    weight = stage.tensor("weight", "weight")
    result = stage.tensor(made)
    if shares:
        result.base, result.storage = weight, weight.storage
    return stage.hears(LostWrites(stage, stage.claims), ResultDropped(stage.find(statement), result))


def test_a_write_into_what_an_index_copied_is_told() -> None:
    assert dropped("weight[rows].zero_()", "weight[rows]") == [("write-lost", 1)]
    assert dropped("weight.clone().clamp_(-1, 1)", "weight.clone()") == [("write-lost", 1)]


def test_a_write_through_a_view_is_not_told() -> None:
    assert dropped("weight[0].zero_()", "weight[0]", shares=True) == []


# -- one layer in every place of a row -----------------------------------------------------------------------------------------


def row(text: str) -> list[tuple[str, int]]:
    stage = Stage(f"layer\n{text}")
    weight = stage.tensor("layer", "weight", is_parameter=True)
    layer = Layer("nn.Linear", {}, weight.site)
    layer.module, layer.attributes = ModuleState(), {"weight": weight}
    made = Layer("nn.ModuleList", {}, weight.site)
    made.attributes = {"0": layer, "1": layer}
    made.module.registered = {"0": "module", "1": "module"}
    return stage.hears(RepeatedModules(stage, stage.claims), LayerMade(made, stage.find(text)))


@pytest.mark.parametrize("given", ["[layer] * 2", "[layer for _ in range(2)]", "list(map(f, layer))"])
def test_a_row_of_one_layer_is_told(given: str) -> None:
    assert row(f"ModuleList({given})") == [("module-repeated", 2)]


@pytest.mark.parametrize("given", ["[layer, layer]", "[self.layer for _ in range(2)]", "[copy(layer)] * 1"])
def test_what_is_written_out_or_has_a_name_of_its_own_is_not_told(given: str) -> None:
    assert row(f"ModuleList({given})") == []


# -- softmaxes over one element ------------------------------------------------------------------------------------------------


def softened(*sizes: int, is_walked: bool = True, made: str = "nn.Linear(3, 1)") -> list[tuple[str, int]]:
    stage = Stage(f"net = {made}\nx = net(y)\ntorch.softmax(x, 1)\nloss.backward()")
    detector = EvenSoftmaxes(stage, stage.claims)
    for size in sizes:
        weight = stage.tensor(made, "weight", shape=(size, 3))
        weight.is_parameter = True
        x = stage.tensor("net(y)", "x", op="Linear", inputs=(weight,), shape=(4, size))
        result = stage.tensor("torch.softmax(x, 1)", op="softmax", inputs=(x.node,))
        if result.node is not None and is_walked:
            result.node.walked = stage.at("loss.backward()")
        fact = Applied("softmax", x, [x, 1], result, stage.find("torch.softmax(x, 1)"))
        stage.hears(detector, fact)
    return stage.hears(detector, finish=True)


def test_a_softmax_over_one_element_that_a_backward_passes_is_told() -> None:
    assert softened(1) == [("gradient-even", 3)]
    assert softened(1, is_walked=False) == []


def test_one_element_that_was_counted_may_be_more_of_them() -> None:
    assert softened(1, made="nn.Linear(3, len(words))") == []


@pytest.mark.parametrize("sizes", [(3,), (1, 2)])
def test_one_that_has_more_to_choose_from_at_some_call_is_not_told(sizes: tuple[int, ...]) -> None:
    assert softened(*sizes) == []
