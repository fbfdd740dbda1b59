"""Detectors of what users reported, each by itself: optimizers made again, backwards that ignore, norm layers switched back, schedules."""

from __future__ import annotations

import pytest

from gradsight.detect.early_schedulers import EarlySchedulers
from gradsight.detect.ignored_gradients import IgnoredGradients
from gradsight.detect.kept_models import KeptModels
from gradsight.detect.remade_optimizers import RemadeOptimizers
from gradsight.detect.undone_modes import UndoneModes
from gradsight.model.library_objects import Scheduler
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Collected, CustomApplied, DataAssigned, Iterated, Stepped, Used, Walked
from gradsight.model.values import ClassValue, Instance, Layer, ModuleState, Seq
from tests.detect.staging import Stage, function_of, run_of
from tests.detect.test_training_detectors import acted, enter_loop, layer_with, stepped

# -- optimizers that are made in every iteration ---------------------------------------------------------------------------

REMADE = "for x in data:\n    opt = Adam(p)\n    opt.step()"


def remade(path: str, rounds: int = 2) -> tuple[Stage, Tensor]:
    stage = Stage(REMADE)
    p = stage.tensor("p", "p", is_parameter=True)
    for number in range(rounds):
        enter_loop(stage, number)
        optimizer = stage.optimizer("Adam(p)", p)
        optimizer.path = path
        stepped(stage, optimizer, "opt.step()")
    return stage, p


def test_an_optimizer_with_averages_that_every_iteration_makes_is_told() -> None:
    stage, _ = remade("torch.optim.Adam")
    told = stage.hears(RemadeOptimizers(stage, stage.claims), finish=True)
    assert told == [("optimizer-made-again", 2)]


@pytest.mark.parametrize(("path", "rounds"), [("torch.optim.SGD", 2), ("torch.optim.Adam", 1)])
def test_one_that_keeps_nothing_or_is_made_once_is_not_told(path: str, rounds: int) -> None:
    stage, _ = remade(path, rounds)
    assert stage.hears(RemadeOptimizers(stage, stage.claims), finish=True) == []


def test_one_for_parameters_that_are_put_back_begins_anew_on_purpose() -> None:
    stage, p = remade("torch.optim.Adam")
    fact = DataAssigned(p, p, stage.at("opt.step()"))
    assert stage.hears(RemadeOptimizers(stage, stage.claims), fact, finish=True) == []


# -- custom backwards that ignore their gradient -----------------------------------------------------------------------------

IGNORING = """
    class Double:
        def backward(ctx, grad):
            return {returned}
    y = Double.apply(x)
    loss.backward()
"""


def walked(returned: str, op: str) -> list[tuple[str, int]]:
    stage = Stage(IGNORING.format(returned=returned))
    x = stage.tensor("x", "x")
    y = stage.tensor("Double.apply(x)", "y", "Double", (x,))
    loss = stage.tensor("loss", "loss", op, (y.node,))
    cls = ClassValue("Double", [], {}, "autograd")
    applied = CustomApplied(
        cls, function_of(stage, "backward"), 1, [x], {}, set(), {}, y, True, True, stage.at("Double.apply(x)")
    )
    assert y.node is not None
    assert loss.node is not None
    y.node.customs = [applied]
    fact = Walked([loss.node, y.node], stage.at("loss.backward()"), None)
    return stage.hears(IgnoredGradients(stage, stage.claims), fact)


def test_a_backward_that_ignores_a_gradient_which_is_scaled_is_told_at_its_return() -> None:
    assert walked("2 * ctx.factor", "mean") == [("gradient-ignored", 3)]


@pytest.mark.parametrize(("returned", "op"), [("2 * grad", "mean"), ("2 * ctx.factor", "sum")])
def test_one_that_uses_it_or_gets_ones_is_not_told(returned: str, op: str) -> None:
    assert walked(returned, op) == []


# -- norm layers that are switched back --------------------------------------------------------------------------------------


def switched(pieces: list[str]) -> list[tuple[str, int]]:
    stage = Stage("norm.eval()\nmodel.train()\nnorm(x)\nloss.backward()")
    weight = stage.tensor("norm", "norm.weight", is_parameter=True)
    layer = Layer("nn.BatchNorm1d", {}, weight.site)
    layer.module, layer.attributes = ModuleState(), {"weight": weight}
    model = Instance(ClassValue("Net", [], {}, "module"), weight.site)
    model.attributes = {"norm": layer}
    detector = UndoneModes(stage, stage.claims)
    stage.modules_in = lambda module: [("", module), *module.attributes.items()]  # type: ignore[method-assign]
    for piece in pieces:
        if piece == "norm(x)":
            stage.tick += 1
            arguments = {"self.running_mean": weight, "self.weight": weight}
            stage.hears(detector, Used(arguments, stage.find(piece)))
        else:
            is_own = piece == "norm.eval()"
            acted(stage, "eval" if is_own else "train", layer if is_own else model, piece)
    run_of(stage, "loss.backward()", stage.tensor("loss", "loss", "mean", (weight,)), weight)
    return stage.hears(detector, finish=True)


def test_a_norm_layer_that_train_switches_back_before_it_is_used_is_told() -> None:
    assert switched(["norm.eval()", "model.train()", "norm(x)"]) == [("freeze-undone", 2)]


@pytest.mark.parametrize(
    "pieces", [["model.train()", "norm.eval()", "norm(x)"], ["norm.eval()", "norm(x)", "model.train()"]]
)
def test_one_that_is_frozen_last_or_used_in_between_is_not_told(pieces: list[str]) -> None:
    assert switched(pieces) == []


# -- schedules ---------------------------------------------------------------------------------------------------------------


def scheduled(pieces: list[str]) -> list[tuple[str, int]]:
    stage = Stage("for x in data:\n    schedule.step()\n    opt.step()")
    p = stage.tensor("x", "p", is_parameter=True)
    optimizer = stage.optimizer("opt.step()", p)
    schedule = Scheduler("torch.optim.lr_scheduler.StepLR", stage.at("schedule.step()"), optimizer)
    enter_loop(stage)
    for piece in pieces:
        if piece == "opt.step()":
            stepped(stage, optimizer, piece)
        else:
            acted(stage, "scheduler", schedule, piece)
    return stage.hears(EarlySchedulers(stage, stage.claims), finish=True)


def test_a_schedule_that_goes_on_before_the_first_step_is_told() -> None:
    assert scheduled(["schedule.step()", "opt.step()"]) == [("scheduler-first", 2)]


def test_a_schedule_that_follows_the_steps_is_not_told() -> None:
    assert scheduled(["opt.step()", "schedule.step()"]) == []


# -- models that are kept in a list ----------------------------------------------------------------------------------------

KEPT = "for x in data:\n    kept.append(model)\n    opt.step()\nprint(kept)"


def kept_in_list(rounds: int) -> list[tuple[str, int]]:
    stage = Stage(KEPT)
    weight = stage.tensor("model", "weight", is_parameter=True)
    model, kept = layer_with(weight), Seq("list", [])
    optimizer = stage.optimizer("opt", weight)
    facts: list[object] = []
    for _ in range(rounds):
        facts.append(Collected(model, kept, stage.at("kept.append(model)")))
        facts.append(Stepped(optimizer, stage.at("opt.step()")))
    facts.append(Iterated(kept, stage.find("print(kept)")))
    return stage.hears(KeptModels(stage, stage.claims), *facts)


def test_a_list_that_is_given_one_model_again_after_a_step_is_told() -> None:
    assert kept_in_list(rounds=2) == [("model-not-copied", 2)]


def test_a_list_that_is_given_a_model_once_is_not_told() -> None:
    assert kept_in_list(rounds=1) == []
