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


RECORDED = """\
import torch
from torch import nn

net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
average, shadow = torch.zeros(2, 3), {"weight": torch.zeros(2, 3)}
for x in torch.randn(6, 4, 3):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
    UPDATE
"""


@pytest.mark.parametrize(
    ("update", "told"),
    [
        ("average = 0.9 * average + 0.1 * net.weight", [("GS404", 11)]),
        ("average = torch.lerp(average, net.weight, 0.1)", [("GS404", 11)]),
        ("shadow['weight'] = 0.9 * shadow['weight'] + 0.1 * net.weight", [("GS404", 11)]),
        ("average = 0.9 * average + 0.1 * net.weight.detach()", []),
        ("average = 0.9 * average.detach() + 0.1 * net.weight", []),
        ("average = 0.1 * net.weight", []),
    ],
)
def test_an_average_that_every_step_records_is_reported(
    standby: Standby, tmp_path: Path, update: str, told: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, RECORDED.replace("UPDATE", update), tmp_path)) == told


def test_a_recurrence_that_the_loss_goes_through_is_no_average(standby: Standby, tmp_path: Path) -> None:
    program = """\
import torch
from torch import nn

net = nn.Linear(3, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
state = torch.zeros(3)
for x in torch.randn(6, 3):
    state = 0.9 * state.detach() + 0.1 * net(x)
    optimizer.zero_grad()
    state.square().sum().backward()
    optimizer.step()
far, other = torch.zeros(3), torch.ones(3, requires_grad=True)
for x in torch.randn(6, 3):
    optimizer.zero_grad()
    net(x).square().sum().backward()
    optimizer.step()
    far = 0.9 * far + other
far.square().sum().backward()
"""
    assert codes(run(standby, program, tmp_path)) == []


STAGES = """\
import torch
from torch import nn


class Stages(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, x):
        out = x
        for part in self.parts:
            out = part({given})
        return out


model = Stages()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(3, 5, 3):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("given", "told"), [("x", [("GS517", 13)]), ("out", [])])
def test_a_result_that_leads_to_no_loss_is_reported_where_it_is_computed(
    standby: Standby, tmp_path: Path, given: str, told: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, STAGES.format(given=given), tmp_path)) == told


SHORT = """\
import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number, x in enumerate(torch.randn(5, 4, 3), 1):
    model(x).square().mean().backward()
    if number % {every} == 0:
        optimizer.step()
        optimizer.zero_grad()
{after}
"""


@pytest.mark.parametrize(
    ("every", "after", "told"),
    [
        (8, "", [("GS512", 5)]),
        (5, "", []),
        (8, "importance = model.weight.grad.square()", []),
    ],
)
def test_a_run_without_a_step_is_reported_where_the_optimizer_is_made(
    standby: Standby, tmp_path: Path, every: int, after: str, told: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, SHORT.format(every=every, after=after), tmp_path)) == told
