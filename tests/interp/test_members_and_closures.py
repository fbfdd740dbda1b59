"""Modules that are given to the function around a closure, or of which only methods are called on the way to a loss."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

CLOSURE = """
def fit(net, image, steps):
    opt = torch.optim.LBFGS([image])
    for _ in range(steps):
        def closure():
            {clear}
            loss = net(image).pow(2).sum()
            loss.backward(){claim}
            return loss
        opt.step(closure)

def main(net, size):
    fit(net, torch.rand(size, requires_grad=True), 10)
"""


def test_what_a_closure_applies_is_the_module_that_the_function_around_it_was_given() -> None:
    check(CLOSURE.format(clear="pass", claim="  # GS501"))
    check(CLOSURE.format(clear="opt.zero_grad()", claim=""))


LEFT_ALONE = """
def fit(net, content, steps):
    image = content.clone().requires_grad_(True)
    opt = torch.optim.LBFGS([image])
    for _ in range(steps):
        def closure():
            {clear}
            loss = net(image).pow(2).sum()
            loss.backward(){claim}
            return loss
        opt.step(closure)
"""


def test_an_image_of_which_nothing_is_known_is_fitted_by_a_closure() -> None:
    check(LEFT_ALONE.format(clear="pass", claim="  # GS501"))
    check(LEFT_ALONE.format(clear="opt.zero_grad()", claim=""))
    check(LEFT_ALONE.format(clear="image.grad = None", claim=""))


MEMBERS = """
def fit(v1, v2, loader):
    total = 0
    for x, y in loader:
        {clear}
        codes = v1.encode(x)
        loss = F.mse_loss(v1.decode({codes}), x)
        loss.backward(){claim}
        v2.step()
        total = total + {shown}
    return total
"""


@pytest.mark.parametrize("codes", ["codes", "codes.relu()", "torch.relu(codes)"])
def test_what_alone_has_methods_on_the_way_to_a_loss_is_the_module(codes: str) -> None:
    check(MEMBERS.format(clear="pass", codes=codes, claim="  # GS501", shown="1"))
    check(MEMBERS.format(clear="v2.zero_grad()", codes=codes, claim="", shown="loss.item()"))


def test_a_total_of_its_losses_keeps_their_graphs() -> None:
    text = MEMBERS.format(clear="v2.zero_grad()", codes="codes", claim="", shown="loss")
    check(text.replace("total + loss", "total + loss  # GS404"))


@pytest.mark.parametrize(
    "step",
    [
        "loss = F.mse_loss(v1.decode(v3.encode(x)), y)",
        "loss = F.mse_loss(v1.decode(library.encode(x)), y)",
        "loss = F.mse_loss(x.scaled(2), x.view(-1)) + v1.decode(x).mean()",
    ],
)
def test_of_several_that_may_have_brought_the_graph_none_is_taken_for_it(step: str) -> None:
    check(f"""
import library
def fit(v1, v2, v3, loader):
    for x, y in loader:
        {step}
        loss.backward()
        v2.step()
""")


WEIGHED = """
def fit(model, loader, opt, {weight}):
    for x, y in loader:
        penalty = 0.0
        for p in model.parameters():
            penalty = penalty + p.norm(1){read}
        loss = F.cross_entropy(model(x), y) + {weight} * penalty
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


@pytest.mark.parametrize("weight", ["lam", "lambda_1", "l1_coef", "reg_coeff"])
def test_a_penalty_of_numbers_with_a_weight_trains_nothing(weight: str) -> None:
    check(WEIGHED.format(weight=weight, read=".item()  # GS202"))
    check(WEIGHED.format(weight=weight, read=""))


def test_what_stands_for_all_parameters_has_no_name() -> None:
    report = check("""
def fit(model, opt, loader, score):
    best, kept = 1e9, None
    for epoch in range(10):
        for x, y in loader:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
        if score(model) < best:
            best, kept = score(model), model.state_dict()  # GS107
    model.load_state_dict(kept)
    return model
""")
    assert [finding.message for finding in report.findings] == [
        "`state_dict()` returns the parameters themselves, which change before they are read: copy them"
    ]
