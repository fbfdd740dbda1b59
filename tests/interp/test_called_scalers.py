"""A scaler that is called with a loss and an optimizer does backward and the step: `loss_scaler(loss, optimizer)`."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

LOOP = """
def train_one_epoch(model, criterion, loader, optimizer, loss_scaler, every=1, limit=None):
    for index, (x, y) in enumerate(loader):
        {first}
        loss = {loss}
        {call}
        {last}
"""
CALLS = (
    "loss_scaler(loss, optimizer, clip_grad=limit, parameters=model.parameters())",
    "norm = loss_scaler(loss, optimizer, parameters=model.parameters(), create_graph=False)",
    "loss_scaler(loss, optimizer=optimizer, parameters=model.parameters())",
)
EVERY = "loss_scaler(loss, optimizer, update_grad=(index + 1) % every == 0)"


def loop(
    first: str = "pass", loss: str = "criterion(model(x), y)", call: str = CALLS[0], last: str = "pass"
) -> str:
    return LOOP.format(first=first, loss=loss, call=call, last=last)


@pytest.mark.parametrize("call", CALLS)
def test_a_loop_that_never_clears(call: str) -> None:
    check(loop(call=f"{call}  # GS501"))


@pytest.mark.parametrize("call", CALLS)
def test_a_loop_that_clears_is_fine(call: str) -> None:
    check(loop(first="optimizer.zero_grad()", call=call))
    check(loop(call=call, last="optimizer.zero_grad()"))
    check(loop(call=call, last="model.zero_grad()"))


def test_gradients_that_are_gathered_for_some_rounds_are_fine() -> None:
    check(loop(call=EVERY, last="if (index + 1) % every == 0:\n            optimizer.zero_grad()"))


def test_a_loss_without_a_graph() -> None:
    check(loop(first="optimizer.zero_grad()", loss="F.mse_loss(model(x).detach(), y)  # GS203"))


def test_what_is_not_called_a_scaler_may_do_anything() -> None:
    check(loop(call="loss_helper(loss, optimizer)"))
