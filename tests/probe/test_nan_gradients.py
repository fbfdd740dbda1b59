"""Gradients that are no numbers although the loss is one: a run names the operator whose derivative is infinite."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.probe.standby import Standby
from tests.probe.test_traps import codes, run

DISTANCES = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(2, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
out = net(x)
gap = (out[0] - out[1]).pow(2).sum()
loss = {root}
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("root", "told"),
    [
        ("gap.sqrt()", [("GS212", 10)]),
        ("torch.where(gap > 100, gap.sqrt(), gap)", [("GS212", 10)]),
        ("1 + gap ** 0.5", [("GS212", 10)]),
        ("(gap + 1e-8).sqrt()", []),
        ("out.sum() + gap ** 2", []),
        ("out.sum() / gap", []),
    ],
)
def test_an_infinite_derivative_is_reported_where_the_loss_is_a_number(
    standby: Standby, tmp_path: Path, root: str, told: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, DISTANCES.format(root=root), tmp_path)) == told
