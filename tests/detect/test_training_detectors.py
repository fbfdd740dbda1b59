"""The detectors of training, each by itself: who steps, who is stepped on, what a step is done with."""

from __future__ import annotations

from gradsight.detect.gradient_ledger import GradientLedger
from gradsight.detect.idle_optimizers import IdleOptimizers
from gradsight.detect.lost_updates import LostUpdates
from gradsight.detect.misplaced_clipping import MisplacedClipping
from gradsight.detect.rebound_models import ReboundModels
from gradsight.detect.repeated_steps import RepeatedSteps
from gradsight.detect.replaced_parameters import ReplacedParameters
from gradsight.detect.undone_freezes import UndoneFreezes
from gradsight.detect.untrained_parameters import UntrainedParameters
from gradsight.detect.unused_layers import UnusedLayers
from gradsight.interp.python.statements import LoopRun
from gradsight.interp.tensors.training import Action
from gradsight.model.library_objects import Optimizer
from gradsight.model.sites import Unit
from gradsight.model.tensors import Tensor
from gradsight.model.trace import (
    Assigned,
    AttributeSet,
    Backward,
    Combined,
    Declared,
    Frozen,
    MethodReturned,
    Stepping,
    Used,
)
from gradsight.model.values import ClassValue, Instance, Layer, ModuleState, Seq
from tests.detect.staging import Stage, run_of


def acted(stage: Stage, verb: str, subject: object, piece: str, leaves: tuple[object, ...] = ()) -> Action:
    """An action of the training protocol, as the machine logs it."""
    stage.tick += 1
    action = Action(verb, subject, stage.at(piece), stage.tick, leaves)  # type: ignore[arg-type]
    stage.log.append(action)
    return action


def stepped(stage: Stage, optimizer: Optimizer, piece: str) -> None:
    optimizer.stepped += 1
    acted(stage, "step", optimizer, piece)


def enter_loop(stage: Stage, number: int = 0) -> None:
    loop = LoopRun(stage.tree.body[0], stage.site(stage.tree.body[0]))
    stage.frame.loops = ((loop, number),)


def layer_with(parameter: Tensor) -> Layer:
    layer = Layer("nn.Linear", {}, parameter.site)
    layer.module, layer.attributes = ModuleState(), {"weight": parameter}
    return layer


# -- optimizers that never step ------------------------------------------------------------------------------------------


def idle_stage(also_steps: bool) -> Stage:
    stage = Stage(
        "a = SGD(p)\nb = SGD(q)\nfor x in data:\n    b.zero_grad()\n    loss.backward()\n    a.step()\n    b.step()"
    )
    p, q = stage.tensor("p", "p", is_parameter=True), stage.tensor("q", "q", is_parameter=True)
    first, second = stage.optimizer("SGD(p)", p), stage.optimizer("SGD(q)", q)
    enter_loop(stage)
    acted(stage, "zero", second, "b.zero_grad()")
    run_of(stage, "loss.backward()", stage.tensor("loss", "loss", "mean", (p, q)), p, q)
    stepped(stage, first, "a.step()")
    if also_steps:
        stepped(stage, second, "b.step()")
    return stage


def test_an_optimizer_that_a_loss_trains_and_nobody_steps_is_told_where_it_is_made() -> None:
    stage = idle_stage(also_steps=False)
    told = stage.hears(IdleOptimizers(stage, stage.claims), finish=True)
    assert told == [("optimizer-never-stepped", 2)]


def test_two_optimizers_that_step_are_not_told() -> None:
    stage = idle_stage(also_steps=True)
    assert stage.hears(IdleOptimizers(stage, stage.claims), finish=True) == []


# -- updates by hand -----------------------------------------------------------------------------------------------------


def lost_update(text: str) -> list[tuple[str, int]]:
    stage = Stage(text)
    p = stage.tensor("p", "p", is_parameter=True)
    gradient = stage.tensor("p.grad", "p.grad", requires_grad=False, grad_of=p)
    scaled = stage.tensor("0.1 * p.grad", "", requires_grad=False)
    moved = stage.tensor("p - 0.1 * p.grad", "p", "sub", (p,))
    detector = LostUpdates(stage, stage.claims)
    facts = [
        Combined("__rmul__", gradient, 0.1, scaled, stage.find("0.1 * p.grad")),
        Combined("__sub__", p, scaled, moved, stage.find("p - 0.1 * p.grad")),
    ]
    stage.hears(detector, *facts)
    stage.names["p"] = moved
    return stage.hears(detector, Assigned(stage.find("p = p - 0.1 * p.grad"), 99))


def test_an_update_bound_to_the_name_of_a_loop_is_told() -> None:
    told = lost_update("for p in parameters:\n    p = p - 0.1 * p.grad")
    assert told == [("update-lost", 2)]


def test_an_update_that_the_loop_reads_again_is_not_lost() -> None:
    assert lost_update("for p in parameters:\n    p = p - 0.1 * p.grad\n    kept.append(p)") == []


# -- clipping --------------------------------------------------------------------------------------------------------------


def clipping_stage(order: str) -> list[tuple[str, int]]:
    stage = Stage("clip(net)\nloss.backward()\nopt.step()\nopt.zero_grad()")
    w = stage.tensor("net", "w", is_parameter=True)
    optimizer = stage.optimizer("opt", w)
    ledger = GradientLedger(stage, stage.claims)
    detector = MisplacedClipping(stage, stage.claims, ledger)
    for word in order.split():
        if word == "backward":
            run_of(stage, "loss.backward()", stage.tensor("loss", "loss", "mean", (w,)), w)
        elif word == "clip":
            acted(stage, "clip", Seq("list", [w]), "clip(net)", (1.0,))
        elif word == "zero":
            acted(stage, "zero", optimizer, "opt.zero_grad()")
        else:
            stepped(stage, optimizer, "opt.step()")
    return stage.hears(detector, finish=True)


def test_a_clip_before_backward_and_one_after_the_step_are_told() -> None:
    assert clipping_stage("zero clip backward step") == [("clip-misplaced", 1)]
    assert clipping_stage("zero backward step clip") == [("clip-misplaced", 1)]


def test_a_clip_between_backward_and_step_is_not_told() -> None:
    assert clipping_stage("zero backward clip step zero backward clip step") == []


# -- methods that are one step -----------------------------------------------------------------------------------------------


def step_method(clears: bool) -> list[tuple[str, int]]:
    stage = Stage("loss.backward()\nself.opt.step()\nself.opt.zero_grad()")
    w = stage.tensor("self", "w", is_parameter=True)
    optimizer = stage.optimizer("self.opt", w)
    detector = RepeatedSteps(stage, stage.claims, GradientLedger(stage, stage.claims))
    run_of(stage, "loss.backward()", stage.tensor("loss", "loss", "mean", (w,)), w)
    stepped(stage, optimizer, "self.opt.step()")
    if clears:
        acted(stage, "zero", optimizer, "self.opt.zero_grad()")
    trainer = Instance(ClassValue("Trainer", [], {}, ""), None)
    names = {optimizer: "opt"}
    return stage.hears(detector, MethodReturned("update", trainer, 0, [optimizer], names, False))


def test_a_method_that_steps_and_clears_nothing_is_told_at_its_backward() -> None:
    assert step_method(clears=False) == [("gradients-left-by-step", 1)]


def test_a_method_that_clears_is_not_told() -> None:
    assert step_method(clears=True) == []


# -- freezes ---------------------------------------------------------------------------------------------------------------


def frozen_and_thawed(*between: str) -> list[tuple[str, int]]:
    stage = Stage("freeze(net)\nnet(x)\nthaw(net)")
    w = stage.tensor("net", "w", is_parameter=True)
    detector = UndoneFreezes(stage, stage.claims)
    stage.hears(detector, Frozen(w, stage.at("freeze(net)")))
    for _ in between:
        stage.hears(detector, Used({"weight": w}, stage.find("net(x)")))
    return stage.hears(detector, Declared(w, stage.at("thaw(net)")), finish=True)


def test_a_freeze_that_is_undone_before_anything_is_computed_is_told() -> None:
    assert frozen_and_thawed() == [("freeze-undone", 3)]


def test_a_freeze_that_was_used_before_it_is_undone_is_not_told() -> None:
    assert frozen_and_thawed("a forward") == []


def test_a_freeze_that_a_backward_went_past_is_not_told() -> None:
    stage = Stage("freeze(net)\nloss.backward()\nthaw(net)")
    w = stage.tensor("net", "w", is_parameter=True)
    detector = UndoneFreezes(stage, stage.claims)
    stage.hears(detector, Frozen(w, stage.at("freeze(net)")))
    run = run_of(stage, "loss.backward()", stage.tensor("loss", "loss", "mean"))
    assert stage.hears(detector, Backward(run), Declared(w, stage.at("thaw(net)")), finish=True) == []


# -- who is trained --------------------------------------------------------------------------------------------------------


def trained_in_part(is_held: bool) -> list[tuple[str, int]]:
    stage = Stage("opt = SGD(head)\nloss.backward()\nopt.step()")
    encoder = stage.tensor("opt", "encoder.weight", is_parameter=True)
    head = stage.tensor("head", "head.weight", is_parameter=True)
    net = layer_with(encoder)
    net.attributes["head"] = head
    stage.modules_made = [net]
    optimizer = stage.optimizer("SGD(head)", head, *([encoder] if is_held else []))
    ledger = GradientLedger(stage, stage.claims)
    detector = UntrainedParameters(stage, stage.claims, ledger, ReplacedParameters(stage, stage.claims))
    run = run_of(
        stage, "loss.backward()", stage.tensor("loss", "loss", "mean", (encoder, head)), encoder, head
    )
    ledger.on_backward(Backward(run))
    stepped(stage, optimizer, "opt.step()")
    return stage.hears(detector, finish=True)


def test_a_part_that_a_loss_trains_and_no_optimizer_holds_is_told_where_the_optimizer_is_made() -> None:
    assert trained_in_part(is_held=False) == [("parameters-not-optimized", 1)]


def test_a_module_that_is_held_as_a_whole_is_not_told() -> None:
    assert trained_in_part(is_held=True) == []


def model_with_a_spare_layer(is_used: bool) -> list[tuple[str, int]]:
    stage = Stage(
        """
        class Net(Module):
            def __init__(self):
                self.a = Linear()
                self.b = Linear()

            def forward(self, x):
                return self.a(x)

        opt = SGD(net)
        loss.backward()
        """
    )
    owner = ClassValue("Net", [], {}, "module")
    owner.node, owner.unit = stage.tree.body[0], Unit("program.py", stage.text, stage.tree.body)  # type: ignore[assignment]
    net = Instance(owner, stage.at("net"))
    net.module = ModuleState()
    weights = {}
    facts = []
    for name in ("a", "b"):
        statement = stage.find(f"self.{name} = Linear()")
        weights[name] = Tensor(stage.site(statement), requires_grad=True)
        weights[name].is_parameter = True
        net.attributes[name] = layer_with(weights[name])
        facts.append(AttributeSet(net, name, net.attributes[name], None, statement))
    stage.tensors_of = lambda module, kind: (  # type: ignore[method-assign]
        list(weights.items()) if module is net else [("weight", module.attributes["weight"])]
    )
    optimizer = stage.optimizer("SGD(net)", *weights.values())
    optimizer.stepped = 1
    run_of(stage, "loss.backward()", stage.tensor("loss", "loss", "mean", (weights["a"],)), weights["a"])
    used = ("a", "b") if is_used else ("a",)
    facts += [Used({"weight": weights[name]}, stage.find("self.a(x)")) for name in used]
    return stage.hears(UnusedLayers(stage, stage.claims), *facts, finish=True)


def test_a_layer_that_nothing_is_computed_with_is_told_where_it_is_made() -> None:
    assert model_with_a_spare_layer(is_used=False) == [("layer-unused", 4)]


def test_layers_that_are_used_are_not_told() -> None:
    assert model_with_a_spare_layer(is_used=True) == []


# -- models that are made anew -------------------------------------------------------------------------------------------


def model_made_anew(is_held: bool = False, is_used_still: bool = False) -> list[tuple[str, int]]:
    stage = Stage("net = first()\nopt = SGD(net)\nnet = second()\nopt.step()")
    old, new = stage.tensor("first()", is_parameter=True), stage.tensor("second()", is_parameter=True)
    detector = ReboundModels(stage, stage.claims)
    stage.names["net"] = layer_with(old)
    stage.hears(detector, Assigned(stage.tree.body[0], 0))
    optimizer = stage.optimizer("SGD(net)", old, *([new] if is_held else []))
    stage.tick += 1
    stage.names["net"] = layer_with(new)
    stage.hears(detector, Assigned(stage.tree.body[2], 0))
    stage.live_gradient_ticks[new] = 5
    if is_used_still:
        stage.gradient_ticks[old] = 5
    return stage.hears(detector, Stepping(optimizer, stage.at("opt.step()")))


def test_a_model_that_gets_its_name_after_the_optimizer_was_made_is_not_stepped() -> None:
    assert model_made_anew() == [("parameters-replaced", 3)]


def test_a_model_that_the_optimizer_holds_or_that_wraps_the_old_one_is_stepped() -> None:
    assert model_made_anew(is_held=True) == []
    assert model_made_anew(is_used_still=True) == []
