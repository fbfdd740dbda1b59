"""Each detector by itself, on a short list of facts."""

from __future__ import annotations

import pytest

from gradsight.detect.accumulation import ClearedAccumulation
from gradsight.detect.attribute_typos import AttributeTypos
from gradsight.detect.custom_functions import CustomFunctionFaults
from gradsight.detect.cut_terms import CutTerms
from gradsight.detect.double_activations import DoubleActivations
from gradsight.detect.failed_backwards import FailedBackwards
from gradsight.detect.frozen_parameters import FrozenParameters
from gradsight.detect.grad_mode_leaks import GradModeLeaks
from gradsight.detect.gradient_flow import GradientFlow
from gradsight.detect.gradient_hooks import GradientHooks
from gradsight.detect.gradient_ledger import GradientLedger
from gradsight.detect.graph_leaks import GraphLeaks
from gradsight.detect.ignored_results import IgnoredResults
from gradsight.detect.layers_in_forward import LayersInForward
from gradsight.detect.lost_results import LostResults
from gradsight.detect.misused_leaves import MisusedLeaves
from gradsight.detect.moving_targets import MovingTargets
from gradsight.detect.reads_after_write import ReadsAfterWrite
from gradsight.detect.recorded_averages import RecordedAverages
from gradsight.detect.recorded_writes import RecordedWrites
from gradsight.detect.refused_writes import RefusedWrites
from gradsight.detect.registration import Registration
from gradsight.detect.replaced_parameters import ReplacedParameters
from gradsight.detect.scaled_gradients import ScaledGradients
from gradsight.detect.second_names import SecondNames
from gradsight.detect.shared_memory import SharedMemory
from gradsight.detect.snapshot_aliases import SnapshotAliases
from gradsight.detect.training_protocol import TrainingProtocol
from gradsight.detect.unused_inputs import UnusedInputs
from gradsight.interp.python.statements import LoopRun
from gradsight.interp.tensors.training import Action
from gradsight.model.library_objects import GradientScaler
from gradsight.model.tensors import Cut, Saved, Tensor
from gradsight.model.trace import (
    Applied,
    Assigned,
    AttributeInvented,
    AttributeSet,
    Augmented,
    Backward,
    CallReturned,
    Cleared,
    Clearing,
    Combined,
    CustomApplied,
    DataAssigned,
    Declared,
    GradAssigned,
    GradRequested,
    Hooked,
    Iterated,
    LayerMade,
    ModuleHooked,
    NameRead,
    NoGraph,
    NonLeafCopied,
    Read,
    ResultDropped,
    SavedChanged,
    SavedOverwritten,
    Scaled,
    ScalerStepping,
    Stepped,
    Stepping,
    Used,
    Walked,
    WriteRefused,
    Wrote,
)
from gradsight.model.values import ClassValue, Layer, ModuleState, Seq
from tests.detect.staging import Stage, function_of, run_of


def test_a_saved_tensor_that_was_overwritten_is_claimed_at_the_write() -> None:
    stage = Stage("y = x.exp()\ny.mul_(2)\ny.sum().backward()")
    y = stage.tensor("x.exp()", "y", "exp")
    assert y.node is not None
    saved = Saved(y, "result", True)
    write = stage.written(y, "y.mul_(2)", "mul_")
    fact = SavedOverwritten(y.node, saved, [write], stage.at("y.sum().backward()"), "backward", "")
    assert stage.hears(FailedBackwards(stage, stage.claims), fact) == [("saved-overwritten", 2)]


def test_a_saved_tensor_that_changed_under_the_same_version_is_claimed_as_silent() -> None:
    stage = Stage("y = x * x\nx.data.mul_(2)\ny.sum().backward()")
    x = stage.tensor("x", "x")
    y = stage.tensor("x * x", "y", "mul", (x,))
    assert y.node is not None
    saved = Saved(x, "self", True)
    write = stage.written(x, "x.data.mul_(2)", "mul_", "silent")
    fact = SavedChanged(y.node, saved, [write], stage.at("y.sum().backward()"), "backward", "")
    assert stage.hears(FailedBackwards(stage, stage.claims), fact) == [("saved-changed-silently", 2)]


def test_a_backward_without_a_graph_is_claimed_at_the_cut() -> None:
    stage = Stage("h = net(x)\nz = h.detach()\nz.sum().backward()")
    h = stage.tensor("net(x)", "h", "linear")
    z = stage.tensor("h.detach()", "z", requires_grad=False)
    cut = Cut("detach", "detach", stage.at("h.detach()"), h, 1)
    fact = NoGraph(z, stage.at("z.sum().backward()"), frozenset({cut}), "backward")
    assert stage.hears(FailedBackwards(stage, stage.claims), fact) == [("backward-without-graph", 2)]


def test_a_leaf_that_torch_refuses_to_write_is_claimed_at_the_write() -> None:
    stage = Stage("w = torch.ones(3, requires_grad=True)\nw.add_(1)")
    w = stage.tensor("torch.ones(3, requires_grad=True)", "w")
    fact = WriteRefused(w, "add_", stage.at("w.add_(1)"), "leaf", w)
    assert stage.hears(RefusedWrites(stage, stage.claims), fact) == [("leaf-written", 2)]


def test_an_error_that_the_program_waits_for_is_not_claimed() -> None:
    stage = Stage("w = torch.ones(3, requires_grad=True)\nw.add_(1)")
    stage.frame.expecting = "specific"
    w = stage.tensor("torch.ones(3, requires_grad=True)", "w")
    fact = WriteRefused(w, "add_", stage.at("w.add_(1)"), "leaf", w)
    assert stage.hears(RefusedWrites(stage, stage.claims), fact) == []


def test_a_recorded_write_is_a_hint_at_the_end() -> None:
    stage = Stage("y = x * 2\ny.mul_(3)")
    y = stage.tensor("x * 2", "y", "mul")
    write = stage.written(y, "y.mul_(3)", "mul_")
    fact = Wrote(y, "mul_", write.site, [], None, write)
    detector = RecordedWrites(stage, stage.claims)
    assert stage.hears(detector, fact) == []
    assert stage.hears(detector, finish=True) == [("inplace-recorded", 2)]


def test_a_write_behind_autograd_counts_only_when_a_backward_reads_the_new_value() -> None:
    stage = Stage("y = x * 2\ny.mul_(5)\nz = y * 3\nz.backward()")
    y = stage.tensor("x * 2", "y", "mul")
    stage.grad_mode = False
    write = stage.written(y, "y.mul_(5)", "mul_", "no_grad")
    detector = RecordedWrites(stage, stage.claims)
    assert stage.hears(detector, Wrote(y, "mul_", write.site, [], None, write)) == []
    stage.tick += 1
    z = stage.tensor("y * 3", "z", "mul", (y.node,))
    assert z.node is not None
    z.node.operands = [y]
    walked = Walked([z.node], stage.at("z.backward()"), None)
    assert stage.hears(detector, walked) == [("graph-written-without-grad", 2)]


def test_a_kept_gradient_that_was_overwritten_is_claimed_where_it_was_kept() -> None:
    stage = Stage("g = w.grad\nw.grad.zero_()\nprint(g)")
    w = stage.tensor("w", "w")
    g = stage.tensor("w.grad", "g", snapshot="grad", grad_of=w)
    written = stage.tensor("w.grad", "w.grad", storage=g.storage, counter=g.counter)
    stage.written(written, "w.grad.zero_()", "zero_", "no_grad")
    fact = Read(g, stage.find("print(g)"))
    assert stage.hears(ReadsAfterWrite(stage, stage.claims), fact) == [("grad-alias-overwritten", 1)]


@pytest.mark.parametrize("stands_for_many", [False, True])
def test_entries_that_are_one_tensor_are_told_unless_it_stands_for_many(stands_for_many: bool) -> None:
    stage = Stage("held += [w]\nheld += [w]\nstep(w)\ncat(held)")
    w = stage.tensor("w", "w", is_parameter=True)
    w.attributes = {"<stand in>": True} if stands_for_many else None
    held = Seq("list", [w, w])
    detector = ReadsAfterWrite(stage, stage.claims)
    for _ in held.items:
        detector.note_store(w, held, w.storage.epoch, stage.at("held += [w]"))
    stage.written(w, "step(w)", "add_", "no_grad")
    fact = Iterated(held, stage.find("cat(held)"))
    assert stage.hears(detector, fact) == ([] if stands_for_many else [("alias-read-after-write", 3)])


def test_two_names_for_one_tensor_are_told_when_the_older_one_is_read() -> None:
    stage = Stage("b = a\nb.clamp_(0)\nprint(a)")
    a = stage.tensor("a", "a", "mul")
    stage.names.update(a=a, b=a)
    detector = SecondNames(stage, stage.claims)
    write = stage.written(a, "b.clamp_(0)", "clamp_")
    facts = [Assigned(stage.find("b = a"), 99), Wrote(a, "clamp_", write.site, [], None, write)]
    assert stage.hears(detector, *facts) == []
    assert stage.hears(detector, NameRead("a", stage.find("print(a)"))) == [("alias-read-after-write", 2)]


def test_a_parameter_on_the_memory_of_another_is_told_when_it_is_written() -> None:
    stage = Stage("p.data = q.data\np.add_(1)")
    p = stage.tensor("p", "p", is_parameter=True)
    q = stage.tensor("q", "q", is_parameter=True)
    alias = stage.tensor("q.data", "", snapshot="data", source=q, storage=q.storage)
    detector = SharedMemory(stage, stage.claims)
    p.storage = q.storage
    assigned = DataAssigned(p, alias, stage.at("p.data = q.data"))
    write = stage.written(p, "p.add_(1)", "add_", "no_grad")
    facts = [assigned, Wrote(p, "add_", write.site, [], None, write)]
    assert stage.hears(detector, *facts) == [("alias-read-after-write", 1)]


def test_the_difference_of_a_tensor_with_itself_is_told() -> None:
    stage = Stage("old = w\nw.add_(1)\nw - old")
    w = stage.tensor("w", "w")
    stage.names.update(old=w, w=w)
    detector = SnapshotAliases(stage, stage.claims, ReadsAfterWrite(stage, stage.claims))
    stage.hears(detector, Assigned(stage.find("old = w"), 99))
    stage.written(w, "w.add_(1)", "add_", "no_grad")
    fact = Used({"self": w, "other": w}, stage.find("w - old"))
    assert stage.hears(detector, fact) == [("alias-read-after-write", 2)]


def test_a_result_that_nobody_uses_is_claimed() -> None:
    stage = Stage("x.clamp(0)")
    result = stage.tensor("x.clamp(0)", "", "clamp")
    fact = ResultDropped(stage.find("x.clamp(0)"), result)
    assert stage.hears(IgnoredResults(stage, stage.claims), fact) == [("result-ignored", 1)]


def test_a_total_of_losses_is_claimed_in_its_second_round() -> None:
    stage = Stage("for x in data:\n    loss = f(x)\n    total += loss\n    loss.backward()")
    detector = GraphLeaks(stage, stage.claims)
    total: Tensor | None = None
    statement = stage.find("total += loss")
    loop = LoopRun(stage.tree.body[0], stage.site(stage.tree.body[0]))
    for number in range(2):
        stage.frame.loops = ((loop, number),)
        loss = stage.tensor("f(x)", "loss", "mean")
        loss.shape = ()
        made = stage.tensor("total += loss", "total", "add", (loss.node, *([total.node] if total else [])))
        detector.on_augmented(Augmented(statement, total, loss, made))
        run_of(stage, "loss.backward()", loss)
        assert loss.node is not None
        loss.node.freed = stage.at("loss.backward()")
        total = made
    assert stage.hears(detector, finish=True) == [("graph-kept-alive", 3)]


def test_an_average_of_what_every_step_records_is_claimed() -> None:
    stage = Stage("for x in data:\n    loss.backward()\n    mean = 0.9 * mean + weight")
    detector = RecordedAverages(stage, stage.claims)
    statement = stage.find("mean = 0.9 * mean + weight")
    loop = LoopRun(stage.tree.body[0], stage.site(stage.tree.body[0]))
    before: Tensor | None = None
    for number in range(2):
        stage.frame.loops = ((loop, number),)
        run_of(stage, "loss.backward()", stage.tensor("loss", "loss", "sum"))
        made = stage.tensor(
            "0.9 * mean + weight", "mean", "add", (before.node,) if before else (), shape=(3,)
        )
        stage.names["mean"] = before = made
        detector.on_assigned(Assigned(statement, 0))
    assert stage.hears(detector, finish=True) == [("graph-kept-alive", 3)]


def test_a_parameter_behind_a_cut_is_told_when_its_step_had_no_gradient() -> None:
    stage = Stage("h = net(x)\nz = h.detach()\nloss = head(z)\nloss.backward()\nopt.step()")
    hidden = stage.tensor("net", "net.weight", is_parameter=True)
    h = stage.tensor("net(x)", "h", "linear", (hidden,))
    head = stage.tensor("head", "head.weight", is_parameter=True)
    loss = stage.tensor("head(z)", "loss", "linear", (head,))
    cut = Cut("detach", "detach", stage.at("h.detach()"), h, 1)
    optimizer = stage.optimizer("opt", hidden, head)
    run_of(stage, "loss.backward()", loss, head, cuts=frozenset({cut}))
    stage.live_gradient_ticks[head] = stage.tick
    flow = GradientFlow(stage, stage.claims, ReplacedParameters(stage, stage.claims))
    stage.hears(flow, Stepping(optimizer, stage.at("opt.step()")), Stepped(optimizer, stage.at("opt.step()")))
    assert stage.hears(flow, finish=True) == [("path-cut", 2)]


def test_a_number_in_a_loss_is_told_when_a_backward_goes_past_it() -> None:
    stage = Stage("loss = a + b.detach()\nloss.backward()")
    w = stage.tensor("a", "w", is_parameter=True)
    a = stage.tensor("a", "a", "mean", (w,), shape=())
    source = stage.tensor("b", "b", "mean", (w,), shape=())
    cut = Cut("detach", "detach", stage.at("b.detach()"), source, 1)
    without = stage.tensor("b.detach()", "", requires_grad=False, shape=(), cuts=frozenset({cut}))
    result = stage.tensor("a + b.detach()", "loss", "add", (a.node,), shape=())
    flow = GradientFlow(stage, stage.claims, ReplacedParameters(stage, stage.claims))
    detector = CutTerms(stage, stage.claims, flow)
    joined = Combined("__add__", a, without, result, stage.find("a + b.detach()"))
    run = run_of(stage, "loss.backward()", result, w)
    assert stage.hears(detector, joined, Backward(run)) == [("term-cut", 1)]


def test_a_target_that_the_loss_trains_is_told_after_its_backward() -> None:
    stage = Stage("loss = mse(pred, target)\nloss.backward()")
    w = stage.tensor("pred", "w", is_parameter=True)
    pred = stage.tensor("pred", "pred", "linear", (w,))
    target = stage.tensor("target", "target", "linear", (w,))
    loss = stage.tensor("mse(pred, target)", "loss", "mse_loss", (pred.node, target.node))
    met = Applied("mse_loss", pred, [pred, target], loss, stage.find("mse(pred, target)"))
    run = run_of(stage, "loss.backward()", loss, w)
    detector = MovingTargets(stage, stage.claims)
    assert stage.hears(detector, met, Backward(run), finish=True) == [("target-not-constant", 1)]


def test_softmax_before_cross_entropy_is_told() -> None:
    stage = Stage("p = softmax(h)\nloss = cross_entropy(p, y)")
    p = stage.tensor("softmax(h)", "p", "softmax")
    fact = Applied("cross_entropy", p, [p], None, stage.find("cross_entropy(p, y)"))
    assert stage.hears(DoubleActivations(stage, stage.claims), fact) == [("softmax-before-loss", 2)]


@pytest.mark.parametrize(
    ("name", "claimed"), [("requires_gard", True), ("require_grad", True), ("kind", False)]
)
def test_an_attribute_spelled_nearly_like_one_of_torch_is_told(name: str, claimed: bool) -> None:
    stage = Stage(f"w.{name} = False")
    fact = AttributeInvented(stage.tensor("w", "w"), name, stage.at(f"w.{name}"))
    assert bool(stage.hears(AttributeTypos(stage, stage.claims), fact)) is claimed


def test_a_layer_that_forward_makes_is_told_at_the_end() -> None:
    stage = Stage("class Net(Module):\n    def forward(self, x):\n        return Linear(3, 3)(x)")
    stage.frame.function = function_of(stage, "forward")
    owner = ClassValue("Net", [], {}, "module")
    stage.frame.owner = owner
    layer = Layer("nn.Linear", {"in_features": 3, "out_features": 3}, stage.at("Linear(3, 3)"))
    layer.attributes["weight"] = stage.tensor("Linear(3, 3)", "weight", is_parameter=True)
    fact = LayerMade(layer, stage.find("Linear(3, 3)"))
    assert stage.hears(LayersInForward(stage, stage.claims), fact, finish=True) == [
        ("layer-made-in-forward", 3)
    ]


def test_new_parameters_that_no_optimizer_holds_are_told_at_the_step() -> None:
    stage = Stage("opt = SGD(net)\nnet.fc = Linear()\nopt.step()")
    old = stage.tensor("net", "fc.weight", is_parameter=True)
    new = stage.tensor("Linear()", "fc.weight", is_parameter=True)
    optimizer = stage.optimizer("SGD(net)", old)
    layers = []
    for parameter in (old, new):
        layer = Layer("nn.Linear", {}, None)
        layer.module, layer.attributes = ModuleState(), {"weight": parameter}
        layers.append(layer)
    detector = ReplacedParameters(stage, stage.claims)
    replaced = AttributeSet(object(), "fc", layers[1], layers[0], stage.find("net.fc = Linear()"))
    step = Stepping(optimizer, stage.at("opt.step()"))
    assert stage.hears(detector, replaced, step) == [("parameters-replaced", 2)]


def test_a_hidden_module_is_told_only_of_a_path_that_was_seen_to_its_end() -> None:
    stage = Stage("x = 1")
    stage.ended_early = True
    stage.modules_made = [object()]
    ledger = GradientLedger(stage, stage.claims)
    detector = Registration(stage, stage.claims, ReplacedParameters(stage, stage.claims), ledger)
    assert stage.hears(detector, finish=True) == []


def test_a_gradient_that_was_cleared_before_its_step_is_told_at_the_clear() -> None:
    stage = Stage("loss.backward()\nopt.zero_grad()\nopt.step()")
    w = stage.tensor("loss", "w", is_parameter=True)
    loss = stage.tensor("loss", "loss", "mean", (w,))
    optimizer = stage.optimizer("opt", w)
    ledger = GradientLedger(stage, stage.claims)
    detector = TrainingProtocol(stage, stage.claims, ledger, ReplacedParameters(stage, stage.claims))
    run = run_of(stage, "loss.backward()", loss, w)
    stage.hears(ledger, Backward(run), Cleared([w], False, stage.at("opt.zero_grad()")))
    step = Stepping(optimizer, stage.at("opt.step()"))
    assert stage.hears(detector, step) == [("cleared-before-step", 2)]


def test_a_clear_in_each_round_of_an_inner_loop_is_told_at_the_step_after_it() -> None:
    stage = Stage("for x in data:\n    opt.zero_grad()\n    loss.backward()\nopt.step()")
    w = stage.tensor("loss", "w", is_parameter=True)
    loss = stage.tensor("loss", "loss", "mean", (w,))
    optimizer = stage.optimizer("opt", w)
    ledger = GradientLedger(stage, stage.claims)
    detector = ClearedAccumulation(stage, stage.claims, ledger)
    loop = LoopRun(stage.tree.body[0], stage.site(stage.tree.body[0]))
    for number in range(2):
        stage.frame.loops = ((loop, number),)
        stage.hears(detector, Clearing([w], stage.at("opt.zero_grad()")))
        stage.hears(ledger, Cleared([w], False, stage.at("opt.zero_grad()")))
        stage.hears(ledger, Backward(run_of(stage, "loss.backward()", loss, w)))
    stage.frame.loops = ()
    step = Stepping(optimizer, stage.at("opt.step()"))
    assert stage.hears(detector, step) == [("cleared-before-step", 2)]


def test_a_forward_hook_that_returns_nothing_is_told_where_it_binds_its_output() -> None:
    stage = Stage(
        "def halved(module, inputs, output):\n    output = output * 0.5\nnet.register_forward_hook(halved)"
    )
    detector = LostResults(stage, stage.claims)
    hooked = ModuleHooked(function_of(stage, "halved"), stage.find("net.register_forward_hook(halved)"))
    assert stage.hears(detector, hooked) == [("result-lost", 2)]


def test_gradients_that_nothing_clears_between_two_steps_are_told() -> None:
    stage = Stage("for x in data:\n    loss.backward()\n    opt.step()")
    w = stage.tensor("loss", "w", is_parameter=True)
    loss = stage.tensor("loss", "loss", "mean", (w,))
    w.grad = stage.tensor("loss", "w.grad")
    optimizer = stage.optimizer("opt", w)
    loop = object()
    for number in range(2):
        stage.frame.loops = ((loop, number),)
        run_of(stage, "loss.backward()", loss, w)
        stage.tick += 1
        stage.log.append(Action("step", optimizer, stage.at("opt.step()"), stage.tick))
    ledger = GradientLedger(stage, stage.claims)
    detector = TrainingProtocol(stage, stage.claims, ledger, ReplacedParameters(stage, stage.claims))
    assert stage.hears(detector, finish=True) == [("gradients-never-cleared", 2)]


def test_the_ledger_knows_what_became_of_a_gradient() -> None:
    stage = Stage("loss.backward()\nw.grad = None")
    w = stage.tensor("loss", "w")
    loss = stage.tensor("loss", "loss", "mean", (w,))
    ledger = GradientLedger(stage, stage.claims)
    run = run_of(stage, "loss.backward()", loss, w)
    stage.hears(ledger, Backward(run))
    assert (ledger.records[w].state, ledger.records[w].pending) == ("filled", True)
    stage.hears(ledger, GradAssigned(w, None, stage.find("w.grad = None"), False))
    assert ledger.records[w].state == "dropped"


def test_a_gradient_that_is_still_scaled_is_told_where_it_is_written() -> None:
    stage = Stage("scaled = scaler.scale(loss)\nscaled.backward()\nw.grad.clamp_(1)")
    w = stage.tensor("loss", "w")
    scaled = stage.tensor("scaler.scale(loss)", "scaled", "mul", (w,))
    grad = stage.tensor("w.grad", "w.grad", grad_of=w)
    scaler = GradientScaler("torch.amp.GradScaler", None, enabled=True)
    ledger = GradientLedger(stage, stage.claims)
    detector = ScaledGradients(stage, stage.claims, ledger)
    stage.hears(detector, Scaled(scaler, "scale", [], scaled))
    run = run_of(stage, "scaled.backward()", scaled, w)
    stage.hears(ledger, Backward(run))
    stage.hears(detector, Backward(run))
    write = stage.written(grad, "w.grad.clamp_(1)", "clamp_", "no_grad")
    said = stage.hears(ledger, Wrote(grad, "clamp_", write.site, [], None, write))
    assert said == [("scaled-gradients-used", 3)]


def test_a_frozen_parameter_with_an_old_gradient_is_told_where_it_was_frozen() -> None:
    stage = Stage("w.requires_grad = False\nopt.step()")
    w = stage.tensor("w", "w", requires_grad=False)
    w.frozen_at, w.grad = stage.at("w.requires_grad = False"), stage.tensor("w", "w.grad")
    optimizer = stage.optimizer("opt", w)
    detector = FrozenParameters(stage, stage.claims, GradientLedger(stage, stage.claims))
    step = Stepping(optimizer, stage.at("opt.step()"))
    assert stage.hears(detector, step) == [("frozen-still-moves", 1)]


def test_a_mode_that_its_function_leaves_off_is_told() -> None:
    stage = Stage(
        "def f(x):\n    torch.set_grad_enabled(False)\n    if x:\n        return\n    torch.set_grad_enabled(True)\nf(1)"
    )
    stage.grad_mode, stage.mode_site = False, stage.at("torch.set_grad_enabled(False)")
    fact = CallReturned(function_of(stage, "f"), None, stage.find("f(1)"), 0, True)
    assert stage.hears(GradModeLeaks(stage, stage.claims), fact) == [("grad-mode-left-off", 2)]


def test_a_hook_that_edits_a_shared_gradient_is_told() -> None:
    stage = Stage("def hook(grad):\n    grad.mul_(2)\nh.register_hook(hook)\nloss.backward()")
    h = stage.tensor("h", "h", "linear")
    loss = stage.tensor("loss", "loss", "add", (h.node,))
    run_of(stage, "loss.backward()", loss)
    fact = Hooked(h, function_of(stage, "hook"), stage.find("h.register_hook(hook)"))
    assert ("gradient-edited", 2) in stage.hears(GradientHooks(stage, stage.claims), fact, finish=True)


def test_an_input_written_without_mark_dirty_is_told_at_the_write() -> None:
    stage = Stage("x.mul_(2)\nDouble.apply(x)")
    x = stage.tensor("x", "x", "linear")
    before = {x: x.storage.epoch}
    stage.written(x, "x.mul_(2)", "mul_", "no_grad")
    cls = ClassValue("Double", [], {}, "autograd")
    fact = CustomApplied(cls, None, 1, [x], before, set(), {}, x, True, True, stage.at("Double.apply(x)"))
    assert stage.hears(CustomFunctionFaults(stage, stage.claims), fact) == [("dirty-not-marked", 1)]


def test_a_gradient_asked_of_what_the_output_does_not_use_is_told() -> None:
    stage = Stage("grad(y, z)")
    y = stage.tensor("y", "y", "exp")
    z = stage.tensor("z", "z")
    fact = GradRequested([y], z, stage.at("grad(y, z)"))
    assert stage.hears(UnusedInputs(stage, stage.claims), fact) == [("grad-of-unused", 1)]


def test_a_copied_non_leaf_is_told() -> None:
    stage = Stage("deepcopy(h)")
    fact = NonLeafCopied(stage.tensor("h", "h", "linear"), stage.at("deepcopy(h)"))
    assert stage.hears(MisusedLeaves(stage, stage.claims), fact) == [("non-leaf-copied", 1)]


def test_a_leaf_declared_behind_a_cut_is_remembered() -> None:
    stage = Stage("z = h.detach()\nz.requires_grad_()")
    h = stage.tensor("h", "h", "linear")
    cut = Cut("detach", "detach", stage.at("h.detach()"), h, 1)
    z = stage.tensor("h.detach()", "z", cuts=frozenset({cut}))
    flow = GradientFlow(stage, stage.claims, ReplacedParameters(stage, stage.claims))
    stage.hears(flow, Declared(z, stage.at("z.requires_grad_()")))
    assert flow.declared[z].line == 2


def test_a_claim_is_made_once_per_place() -> None:
    stage = Stage("x.clamp(0)")
    detector = IgnoredResults(stage, stage.claims)
    fact = ResultDropped(stage.find("x.clamp(0)"), stage.tensor("x.clamp(0)", "", "clamp"))
    assert len(stage.hears(detector, fact, fact)) == 1


def test_what_an_imported_module_does_is_not_claimed() -> None:
    stage = Stage("x.clamp(0)")
    stage.unheard = True
    fact = ResultDropped(stage.find("x.clamp(0)"), stage.tensor("x.clamp(0)", "", "clamp"))
    assert stage.hears(IgnoredResults(stage, stage.claims), fact) == []


def test_a_sequence_of_one_tensor_is_read_with_its_last_value() -> None:
    stage = Stage("out.append(h)\nh.mul_(2)\nprint(out)")
    h = stage.tensor("h", "h", "linear")
    out = Seq("list", [h, h])
    h.storage.stores = [(id(out), 0, stage.at("out.append(h)"))]
    stage.written(h, "h.mul_(2)", "mul_")
    h.storage.stores.append((id(out), h.storage.epoch, stage.at("out.append(h)")))
    fact = Read(out, stage.find("print(out)"))
    assert stage.hears(ReadsAfterWrite(stage, stage.claims), fact) == [("alias-read-after-write", 2)]


@pytest.mark.parametrize("stands_in", [False, True])
def test_parameters_that_two_optimizers_share_out_are_not_one(stands_in: bool) -> None:
    stage = Stage("""
        net = make()
        opt = Adam(net)
        aux = Adam(net)
        loss.backward()
        opt.step()
        other.backward()
        aux.step()
    """)
    weight = stage.tensor("make()", "net")
    weight.attributes = {"<stand in>": True} if stands_in else None
    one, two = stage.optimizer("opt = Adam(net)", weight), stage.optimizer("aux = Adam(net)", weight)
    for backward, step, stepped in (("loss", "opt", one), ("other", "aux", two)):
        run_of(stage, f"{backward}.backward()", weight, weight)
        stage.tick += 1
        stage.log.append(Action("step", stepped, stage.at(f"{step}.step()"), stage.tick, set()))
    ledger = GradientLedger(stage, stage.claims)
    detector = TrainingProtocol(stage, stage.claims, ledger, ReplacedParameters(stage, stage.claims))
    detector.finish()
    kinds = [event.kind for event in stage.claims.events]
    assert ("foreign-gradients" in kinds) is not stands_in


@pytest.mark.parametrize(("given", "said"), [("opt", False), ("one", True)])
def test_scaler_may_step_another_optimizer_in_each_round(given: str, said: bool) -> None:
    stage = Stage(f"for name, opt in every.items():\n    scaler.step({given})")
    loop = LoopRun(stage.tree.body[0], stage.site(stage.tree.body[0]))
    optimizer = stage.optimizer(given)
    scaler = GradientScaler("torch.amp.GradScaler", None, True)
    detector = ScaledGradients(stage, stage.claims, GradientLedger(stage, stage.claims))
    for number in range(2):
        stage.frame.loops = ((loop, number),)
        detector.on_scaler_stepping(ScalerStepping(scaler, optimizer, stage.at(f"scaler.step({given})")))
    assert ("scaler-misused" in [event.kind for event in stage.claims.events]) is said
