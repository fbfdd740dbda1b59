"""What a program computed or copied in part: a run reports it when it is over, with the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.probe.standby import Standby
from tests.probe.test_traps import codes, run

AVERAGE = """\
import copy
import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
average = copy.deepcopy(model).eval()
for batch in torch.randn(3, 8, 2) * 5:
    model(batch)
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.lerp_(fast, 0.1)
        {buffers}
average(torch.ones(1, 2))
"""

TERMS = """\
import torch
from torch import nn

encoder, head = nn.Linear(3, 2), nn.Linear(2, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(4, 5, 3):
    z = encoder(x)
    loss = head(z).square().mean()
    penalty = 0.1 * z.square().mean()
    optimizer.zero_grad()
    {total}.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("buffers", "told"),
    [
        ("pass", [("GS519", 11)]),
        ("average[1].running_mean.copy_(model[1].running_mean)", []),
    ],
)
def test_an_average_that_leaves_statistics_behind_is_reported_at_its_write(
    standby: Standby, tmp_path: Path, buffers: str, told: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, AVERAGE.format(buffers=buffers), tmp_path)) == told


@pytest.mark.parametrize(("total", "told"), [("loss", [("GS209", 9)]), ("(loss + penalty)", [])])
def test_a_term_that_no_loss_has_is_reported_where_it_is_computed(
    standby: Standby, tmp_path: Path, total: str, told: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, TERMS.format(total=total), tmp_path)) == told
