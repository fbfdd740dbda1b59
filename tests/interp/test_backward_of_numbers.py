"""`backward()` on what `item()` gave: wherever the loss comes from, no number has a graph; numbers beside a loss are left alone."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

LOOP = """
from somewhere import compute

def train(loader, opt, engine):
    for batch in loader:
        opt.zero_grad()
        loss = compute(batch)
        BODY
        opt.step()
"""


def loop(body: str) -> str:
    return LOOP.replace("BODY", body.strip().replace("\n", "\n        "))


@pytest.mark.parametrize(
    "body",
    [
        "value = loss.item()  # GS202\nvalue.backward()",
        "loss = loss.item()  # GS202\nengine.backward(loss)",
        "loss = loss.item()  # GS202\nengine.backward(loss=loss)",
    ],
)
def test_number_of_an_unknown_loss_that_is_differentiated_is_reported(body: str) -> None:
    check(loop(body))


@pytest.mark.parametrize(
    "body",
    [
        "value = loss.item()\nloss.backward()",
        # What is scaled by a number stays what it is.
        "scale = loss.item()\nloss = loss * (1 / scale)\nloss.backward()",
        "scale = compute(batch).item()\nloss = loss * scale\nloss.backward()",
        "scale = compute(batch).item()\nloss = scale * compute(batch)\nloss.backward()",
        "value = loss.item()\nprint(value)\nengine.backward(loss)",
        "value = loss.item()\nengine.backward(loss=loss, scale=value)",
        "engine.record(loss.item())\nloss.backward()",
    ],
)
def test_number_beside_a_loss_that_is_differentiated_is_left_alone(body: str) -> None:
    check(loop(body))


GIVEN_BY_NAME = """
def train(booster, model, optimizer, loader):
    for x, y in loader:
        CLEAR
        loss = F.mse_loss(model(x), y)
        booster.backward(loss=loss / 3, optimizer=optimizer)CLAIM
        optimizer.step()
"""


def test_loss_that_is_given_by_name_is_differentiated() -> None:
    check(GIVEN_BY_NAME.replace("CLEAR", "pass").replace("CLAIM", "  # GS501"))
    check(GIVEN_BY_NAME.replace("CLEAR", "optimizer.zero_grad()").replace("CLAIM", ""))
