"""What a run sees of rows of one layer, of factors that are both zero, and of probabilities in the place of their logarithms."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.probe.standby import Standby
from tests.probe.test_traps import codes, run

ROW = """\
import torch
from torch import nn

layer = nn.Linear(3, 3)
rows = nn.ModuleList({row})
x = torch.ones(2, 3)
for part in rows:
    x = part(x)
x.sum().backward()
"""

FACTORS = """\
import torch
from torch import nn

down, up = nn.Linear(4, 2, bias=False), nn.Linear(2, 4, bias=False)
base = nn.Linear(4, 4)
{start}
nn.init.zeros_(up.weight)
optimizer = torch.optim.SGD([*down.parameters(), *up.parameters()], lr=0.1)
for x in torch.randn(3, 5, 4):
    optimizer.zero_grad()
    (base(x) + up(down(x)) - 1).square().mean().backward()
    optimizer.step()
"""

LIKELIHOOD = """\
import torch
from torch import nn

net = nn.Linear(3, 2)
scores = net(torch.ones(4, 3))
loss = nn.functional.nll_loss({given}, torch.zeros(4, dtype=torch.long))
loss.backward()
"""


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("list(map(lambda _: layer, range(3)))", [("GS608", 5)]),
        ("[layer, layer]", []),
        ("[nn.Linear(3, 3) for _ in range(3)]", []),
    ],
)
def test_a_row_of_one_layer_is_reported_where_it_is_made(
    standby: Standby, tmp_path: Path, row: str, told: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, ROW.format(row=row), tmp_path)) == told


@pytest.mark.parametrize(("start", "told"), [("nn.init.zeros_(down.weight)", [("GS208", 11)]), ("pass", [])])
def test_two_factors_that_stay_zero_are_reported_where_they_meet(
    standby: Standby, tmp_path: Path, start: str, told: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, FACTORS.format(start=start), tmp_path)) == told


@pytest.mark.parametrize(
    ("given", "told"), [("torch.softmax(scores, 1)", [("GS605", 6)]), ("torch.log_softmax(scores, 1)", [])]
)
def test_probabilities_in_the_place_of_logarithms_are_reported_at_the_loss(
    standby: Standby, tmp_path: Path, given: str, told: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, LIKELIHOOD.format(given=given), tmp_path)) == told
