"""Writes that autograd does not record and that leave the gradient right: a run does not report them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.probe.standby import Standby
from tests.probe.test_traps import codes, run

LEAF = "import torch\nw = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)\n"

HARMLESS = {
    "a factor of one": "y = w.exp()\ny.data.mul_(1)\n",
    "a quotient by one": "y = w.sigmoid()\ny.data.div_(1.0)\ny.data.sub_(0)\ny.data.pow_(1)\n",
    "a limit that nothing passes": "y = w.exp()\ny.data.clamp_(min=0)\n",
    "its own values": "y = w.exp()\ny.data.copy_(y.data.clone())\n",
    "only the sign of a leaf counts": "y = w.abs()\nw.data.mul_(2)\n",
    "no gradient that is not zero comes to it": "y = w.exp()\nz = torch.relu(-y) + w\ny.data.mul_(2)\ny = z\n",
    "a constant under no_grad": "y = w * 2\nwith torch.no_grad():\n    y.add_(torch.randn(3))\n    y -= 0.5\n",
    "one element under no_grad": "y = w * 2\nwith torch.no_grad():\n    y[0] += 1\n",
    "a constant through data": "y = w * 2\ny.data.add_(torch.randn(3), alpha=2)\n",
    "a mask of scores": "y = w * 2\ny.data.masked_fill_(w > 2, float('-inf'))\ny = y.softmax(0) ** 2\n",
    "a mask of scores under no_grad": "y = w * 2\nwith torch.no_grad():\n    y[w > 2] = -1e9\ny = y.softmax(0) ** 2\n",
}
HARMFUL = {
    "a gradient that is zero for one element": (
        "y = w.exp()\nz = torch.relu(y - 1)\ny.data.mul_(2)\ny = z\n",
        "GS104",
    ),
    "a factor": ("y = w.exp()\ny.data.mul_(2)\n", "GS104"),
    "a limit that something passes": ("y = w.exp()\ny.data.clamp_(min=1)\n", "GS104"),
    "values of its own in another order": ("y = w.exp()\ny.data.copy_(y.data.flip(0))\n", "GS104"),
    "the sign of a leaf": ("y = w.abs()\nw.data.mul_(-2)\n", "GS104"),
    "a factor that only the value feels": ("y = w * 2\ny.data.mul_(3)\n", "GS105"),
    "something learned, under no_grad": ("y = w * 2\nwith torch.no_grad():\n    y.sub_(y.mean())\n", "GS105"),
    "a mask of values": ("y = w * 2\ny.data.masked_fill_(w > 2, 0.0)\n", "GS105"),
    "a factor under no_grad": ("y = w * 2\nwith torch.no_grad():\n    y *= 3\n", "GS105"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_write_that_leaves_the_gradient_right_is_not_reported(
    standby: Standby, tmp_path: Path, name: str
) -> None:
    assert codes(run(standby, LEAF + HARMLESS[name] + "y.sum().backward()\n", tmp_path)) == []


@pytest.mark.parametrize("name", HARMFUL)
def test_its_look_alike_is(standby: Standby, tmp_path: Path, name: str) -> None:
    text, code = HARMFUL[name]
    assert [found for found, _ in codes(run(standby, LEAF + text + "y.sum().backward()\n", tmp_path))] == [
        code
    ]
