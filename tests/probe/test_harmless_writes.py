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
    "an array that is changed by nothing": "y = w.exp()\na = y.detach().numpy()\na += 0\na *= 1\n",
    "an array that is limited where nothing is": (
        "import numpy\ny = w.exp()\na = y.detach().numpy()\nnumpy.clip(a, 0, 1e9, out=a)\n"
    ),
    "only the sign of a leaf counts": "y = w.abs()\nw.data.mul_(2)\n",
    "no gradient that is not zero comes to it": "y = w.exp()\nz = torch.relu(-y) + w\ny.data.mul_(2)\ny = z\n",
    "a constant under no_grad": "y = w * 2\nwith torch.no_grad():\n    y.add_(torch.randn(3))\n    y -= 0.5\n",
    "one element under no_grad": "y = w * 2\nwith torch.no_grad():\n    y[0] += 1\n",
    "a constant through data": "y = w * 2\ny.data.add_(torch.randn(3), alpha=2)\n",
    "a mask of scores": "y = w * 2\ny.data.masked_fill_(w > 2, float('-inf'))\ny = y.softmax(0) ** 2\n",
    "one element, to which no gradient comes": "y = w.exp()\nz = y * torch.tensor([0.0, 1.0, 1.0])\ny.data[0] = 7.0\ny = z\n",
    "elements that another branch was taken for": "y = w.exp()\nz = torch.where(w > 0, y, w)\ny.data[1] = 7.0\ny = z\n",
    "a row whose product is not used": "a = torch.ones(3, 3)\nz = a @ w\na.data[0].mul_(2)\ny = z[1:]\n",
    "a factor under no_grad, and a weight of zero": (
        "y = w * 2\nwith torch.no_grad():\n    y *= 3\ny = y * 0 + w\n"
    ),
    "a factor under no_grad where an activation passes nothing on": (
        "y = -w.abs() - 1\nwith torch.no_grad():\n    y *= 3\ny = torch.relu(y) + w\n"
    ),
    "one element under no_grad that is masked later": (
        "y = w * 2\nwith torch.no_grad():\n    y[0] *= 3\ny = y * torch.tensor([0.0, 1.0, 1.0])\n"
    ),
    "an earlier reader has the right gradient": (
        "y = w * 2\nz = y + 1\nwith torch.no_grad():\n    y *= 3\ny = z + y * 0\n"
    ),
    "each of several steps, with a weight of zero": (
        "for _ in range(300):\n    y = w * 2\n    with torch.no_grad():\n        y *= 3\n    (y * 0 + w).sum().backward()\ny = w * 2\n"
    ),
    "a mask of scores under no_grad": "y = w * 2\nwith torch.no_grad():\n    y[w > 2] = -1e9\ny = y.softmax(0) ** 2\n",
    "a name that stood for the average before": (
        "y = w * 2\naverage = y.detach().clone()\nfor part in [average]:\n    part.requires_grad = False\n"
        "for _ in range(2):\n    for part, mean in zip([y], [average]):\n        with torch.no_grad():\n"
        "            mean.lerp_(part, 0.5)\n"
    ),
}
HARMFUL = {
    "an array that is changed after it was not": (
        "y = w.exp()\na = y.detach().numpy()\na += 0\na += 1\n",
        "GS104",
    ),
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
    "a sign that an activation looks at": ("y = torch.relu(w)\ny.data.mul_(-1)\n", "GS104"),
    "one element, to which a gradient comes": (
        "y = w.exp()\nz = y * torch.tensor([0.0, 1.0, 1.0])\ny.data[1] = 7.0\ny = z\n",
        "GS104",
    ),
    "a row whose product is used": (
        "a = torch.ones(3, 3)\nz = a @ w\na.data[1].mul_(2)\ny = z[1:]\n",
        "GS104",
    ),
    "a later reader takes away what an earlier one gave": (
        "y = w * 2\nz = y.clone()\nwith torch.no_grad():\n    y *= 3\ny = z - y\n",
        "GS105",
    ),
    "a view that was made before": (
        "y = w * 2\nv = y[1:]\nwith torch.no_grad():\n    y *= 3\ny = v.sin()\n",
        "GS105",
    ),
    "a view that is made afterwards": (
        "y = w * 2\nwith torch.no_grad():\n    y *= 3\ny = y[1:].sin()\n",
        "GS105",
    ),
    "one element under no_grad that is read later": (
        "y = w * 2\nwith torch.no_grad():\n    y[0] *= 3\ny = y * torch.tensor([1.0, 1.0, 0.0])\n",
        "GS105",
    ),
    "one step of several": (
        "for step in range(300):\n    y = w * 2\n    with torch.no_grad():\n        y *= 3\n    (y * (step == 299) + w).sum().backward()\ny = w * 2\n",
        "GS105",
    ),
    "an alias that takes the loss away": (
        "y = w * 2\nz = y.detach()\nz.mul_(3)\ny = (y - z) ** 2\n",
        "GS107",
    ),
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
