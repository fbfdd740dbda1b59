"""The detectors of gradients that are lost or refused, each by itself."""

from __future__ import annotations

from gradsight.detect.cancelled_gradients import CancelledGradients
from gradsight.detect.cut_features import CutFeatures
from gradsight.detect.dead_terms import DeadTerms
from gradsight.detect.direct_forwards import DirectForwards
from gradsight.detect.gradient_flow import GradientFlow
from gradsight.detect.ignored_parameters import IgnoredParameters
from gradsight.detect.recorded_writes import RecordedWrites
from gradsight.detect.refused_gradients import RefusedGradients
from gradsight.detect.replaced_parameters import ReplacedParameters
from gradsight.detect.returned_values import ReturnedValues
from gradsight.detect.zero_features import ZeroFeatures
from gradsight.model.tensors import Cut, Tensor
from gradsight.model.trace import (
    Backward,
    Combined,
    FlagRefused,
    ForwardCalled,
    ForwardReturned,
    GradientRefused,
    Stepped,
    Transformed,
)
from gradsight.model.values import Layer
from tests.detect.staging import Stage, function_of, run_of


def straight_through(is_detached: bool) -> list[tuple[str, int]]:
    stage = Stage("rest = q - x\ny = x + rest\ny.backward()")
    w = stage.tensor("q", "w", is_parameter=True)
    x = stage.tensor("x", "x", "linear", (w,))
    q = stage.tensor("q", "q", requires_grad=False)
    rest = stage.tensor("q - x", "rest", "sub", (x.node,))
    assert rest.node is not None
    rest.node.operands = [q, x]
    if is_detached:
        rest.node, rest.requires_grad = None, False
    y = stage.tensor("x + rest", "y", "add", (x.node, *([rest.node] if rest.node else [])))
    assert y.node is not None
    y.node.operands = [x, rest]
    run = run_of(stage, "y.backward()", y, w)
    fact = Combined("__add__", x, rest, y, stage.find("x + rest"))
    return stage.hears(CancelledGradients(stage, stage.claims), fact, Backward(run))


def test_a_sum_whose_gradients_cancel_is_told_when_a_backward_comes_through() -> None:
    assert straight_through(is_detached=False) == [("gradient-cancels", 2)]


def test_a_straight_through_estimator_is_not_told() -> None:
    assert straight_through(is_detached=True) == []


def actor_loss(is_cut: bool) -> list[tuple[str, int]]:
    stage = Stage("value = critic(action.detach())\nloss = entropy + value\nloss.backward()\nopt.step()")
    actor = stage.tensor("action", "actor.weight", is_parameter=True)
    critic = stage.tensor("critic", "critic.weight", is_parameter=True)
    action = stage.tensor("action", "action", "linear", (actor,))
    entropy = stage.tensor("entropy", "entropy", "mean", (actor,))
    value = stage.tensor(
        "critic(action.detach())", "value", "linear", (critic, *([] if is_cut else [action.node]))
    )
    if is_cut:
        cut = Cut("detach", "detach", stage.at("action.detach()"), action, 1)
        value.cuts = frozenset({cut})
    loss = stage.tensor("entropy + value", "loss", "add", (entropy.node, value.node))
    optimizer = stage.optimizer("opt", actor)
    flow = GradientFlow(stage, stage.claims, ReplacedParameters(stage, stage.claims))
    detector = DeadTerms(stage, stage.claims, flow)
    run = run_of(stage, "loss.backward()", loss, actor, critic)
    joined = Combined("__add__", entropy, value, loss, stage.find("entropy + value"))
    step = Stepped(optimizer, stage.at("opt.step()"))
    return stage.hears(detector, joined, Backward(run), step, finish=True)


def test_a_term_that_trains_nobody_who_steps_is_told_at_its_cut() -> None:
    assert actor_loss(is_cut=True) == [("term-cut", 1)]


def test_a_term_that_reaches_who_steps_is_not_told() -> None:
    assert actor_loss(is_cut=False) == []


def punished_code(has_target: bool) -> list[tuple[str, int]]:
    stage = Stage(
        "z = enc(x)\nback = dec(z.detach())\nsmall = z.pow(2)\nloss = back + small\nloss.backward()"
    )
    enc = stage.tensor("enc", "enc", is_parameter=True)
    dec = stage.tensor("dec", "dec", is_parameter=True)
    wanted = stage.tensor("x", "x", requires_grad=False)
    z = stage.tensor("enc(x)", "z", "linear", (enc,))
    back = stage.tensor("dec(z.detach())", "back", "linear", (dec,))
    small = stage.tensor("z.pow(2)", "small", "pow", (z.node,))
    loss = stage.tensor("back + small", "loss", "add", (back.node, small.node))
    cut = Cut("detach", "detach", stage.at("z.detach()"), z, 1)
    plain = stage.tensor("z.detach()", "", requires_grad=False)
    plain.cuts = loss.cuts = frozenset({cut})
    assert back.node is not None
    assert small.node is not None
    back.node.operands = [plain, dec]
    small.node.operands = [z, wanted] if has_target else [z]
    stage.optimizers = [stage.optimizer("x", enc, dec)]
    flow = GradientFlow(stage, stage.claims, ReplacedParameters(stage, stage.claims))
    run = run_of(stage, "loss.backward()", loss, enc, dec, cuts=frozenset({cut}))
    return stage.hears(CutFeatures(stage, stage.claims, flow), Backward(run), finish=True)


def test_features_that_only_a_penalty_trains_are_told_at_their_cut() -> None:
    assert punished_code(has_target=False) == [("term-cut", 2)]


def test_features_that_have_a_target_are_not_told() -> None:
    assert punished_code(has_target=True) == []


def rounded_code(hands_back_zeros: bool) -> list[tuple[str, int]]:
    stage = Stage(
        "z = encode(x)\nq = z.round()\nback = decode(q)\nsmall = z.pow(2)\nloss = back + small\nloss.backward()"
    )
    enc = stage.tensor("encode(x)", "enc", is_parameter=True)
    dec = stage.tensor("decode(q)", "dec", is_parameter=True)
    z = stage.tensor("encode(x)", "z", "linear", (enc,))
    q = stage.tensor("z.round()", "q", "round", (z.node,))
    assert q.node is not None
    q.node.zero = hands_back_zeros
    back = stage.tensor("decode(q)", "back", "linear", (q.node, dec))
    small = stage.tensor("z.pow(2)", "small", "pow", (z.node,))
    loss = stage.tensor("back + small", "loss", "add", (back.node, small.node))
    stage.optimizers = [stage.optimizer("x", enc, dec)]
    run = run_of(stage, "loss.backward()", loss, enc, dec)
    return stage.hears(ZeroFeatures(stage, stage.claims), Backward(run), finish=True)


def test_a_code_that_hands_back_zeros_leaves_a_penalty_alone() -> None:
    assert rounded_code(hands_back_zeros=True) == [("term-cut", 2)]
    assert rounded_code(hands_back_zeros=False) == []


def test_a_forward_that_is_called_directly_is_told_unless_the_module_calls_its_own() -> None:
    stage = Stage("net.forward(x)")
    net = Layer("nn.Linear", {}, None)
    fact = ForwardCalled(net, stage.find("net.forward(x)"))
    detector = DirectForwards(stage, stage.claims)
    stage.frame.receiver = net
    assert stage.hears(detector, fact) == []
    stage.frame.receiver = None
    assert stage.hears(detector, fact) == [("forward-called", 1)]


def transformed(body: str) -> list[tuple[str, int]]:
    stage = Stage(f"def loss(params, x):\n    return {body}\ngrad(loss)")
    fact = Transformed(function_of(stage, "loss"), [0], "grad", stage.find("grad(loss)"))
    return stage.hears(IgnoredParameters(stage, stage.claims), fact)


def test_a_function_that_does_not_use_what_it_is_differentiated_by_is_told() -> None:
    assert transformed("net(x).sum()") == [("func-ignores-parameters", 3)]


def test_a_function_that_uses_it_is_not_told() -> None:
    assert transformed("functional_call(net, params, x).sum()") == []


def test_a_flag_and_a_gradient_that_torch_refuses_are_told_where_they_are_given() -> None:
    stage = Stage("t = arange(3)\nt.requires_grad_()\nw.grad = wrong")
    t = stage.tensor("arange(3)", "t", requires_grad=False)
    w = stage.tensor("w", "w")
    detector = RefusedGradients(stage, stage.claims)
    flag = FlagRefused(t, stage.at("t.requires_grad_()"), "integer", "call")
    gradient = GradientRefused(w, "(2,)", "(3,)", stage.at("w.grad = wrong"), "shape", "assigned")
    assert stage.hears(detector, flag, gradient) == [("requires-grad-refused", 2), ("gradient-refused", 3)]


def returned_from(name: str, kind: str) -> list[tuple[str, int]]:
    stage = Stage("h = self.encode(x)\ny = rebuild(h)")
    w = stage.tensor("self", "weight", is_parameter=True)
    h = stage.tensor("self.encode(x)", "h", "linear", (w,))
    cut = Cut(kind, "tensor", stage.at("rebuild(h)"), h, 1)
    y = stage.tensor("rebuild(h)", "y", requires_grad=False, cuts=frozenset({cut}))
    detector = ReturnedValues(stage, stage.claims, RecordedWrites(stage, stage.claims))
    returned: list[Tensor] = [y]
    return stage.hears(detector, ForwardReturned(y, returned, name))


def test_a_copy_on_the_way_to_what_a_forward_returns_is_told() -> None:
    assert returned_from("forward", "copy") == [("path-cut", 2)]


def test_a_detach_in_a_forward_and_a_copy_on_the_way_out_of_training_are_not_told() -> None:
    assert returned_from("forward", "detach") == []
    assert returned_from("predict", "copy") == []
