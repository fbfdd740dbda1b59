"""What a run makes of gradients that a program replaces by hand, and of updates that only rebind a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.probe.standby import Standby
from tests.probe.test_traps import codes, run

TWO_NETWORKS = """\
import torch

w, v = torch.ones(3, 1, requires_grad=True), torch.ones(3, 1, requires_grad=True)
first, second = torch.optim.Adam([w]), torch.optim.Adam([v])
def reset():
    for p in (w, v):
        if p.grad is not None:
            {reset}
for x in torch.randn(4, 5, 3):
    (x @ w * (x @ v)).mean().backward()
    first.step()
    reset()
    (x @ w * (x @ v)).pow(2).mean().backward()
    second.step()
    reset()
"""

ONE_NETWORK = """\
import torch
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
for x in torch.randn(4, 5, 3):
    optimizer.zero_grad()
    net(x).sum().backward()
    for p in net.parameters():
        {edit}
    optimizer.step()
"""


@pytest.mark.parametrize("reset", ["p.grad = torch.zeros_like(p)", "p.grad = None", "p.grad.zero_()"])
def test_zeros_that_are_assigned_clear_a_gradient(reset: str, tmp_path: Path, standby: Standby) -> None:
    assert codes(run(standby, TWO_NETWORKS.format(reset=reset), tmp_path)) == []


def test_another_gradient_that_is_assigned_clears_nothing(tmp_path: Path, standby: Standby) -> None:
    assert codes(run(standby, TWO_NETWORKS.format(reset="p.grad = p.grad * 1"), tmp_path)) != []


@pytest.mark.parametrize(
    "edit",
    [
        "p.grad.data.copy_(p.grad.data.clamp(-0.1, 0.1))",
        "p.grad.copy_(p.grad / 2)",
        "p.grad = p.grad.clamp(-0.1, 0.1)",
        "g = p.grad; g = g / 2; p.grad = g",
    ],
)
def test_a_gradient_that_is_clipped_by_hand_is_not_cleared(
    edit: str, tmp_path: Path, standby: Standby
) -> None:
    assert codes(run(standby, ONE_NETWORK.format(edit=edit), tmp_path)) == []


def test_a_gradient_that_is_only_rebound_is_seen(tmp_path: Path, standby: Standby) -> None:
    edit = "g = p.grad\n        g = g.clamp(-0.1, 0.1)"
    assert codes(run(standby, ONE_NETWORK.format(edit=edit), tmp_path)) == [("GS515", 11)]


BALANCED = """\
import torch
from torch import nn

generator, critic = nn.Linear(2, 3), nn.Linear(3, 3)
first, second = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
def energy(x):
    return (x - critic(x)).abs().sum(1).mean()
k = 0
for x in torch.randn(4, 4, 3):
    loss = energy(x) - k * energy(generator(torch.randn(4, 2)).detach()){term}
    second.zero_grad()
    loss.backward()
    second.step()
    first.zero_grad()
    energy(generator(torch.randn(4, 2))).backward()
    first.step()
    k = k + 0.1 * (0.5 * energy(x) - energy(generator(torch.randn(4, 2))))
    k = k{cut}
"""


@pytest.mark.parametrize("cut", [".item()", ".detach()", ".data"])
def test_a_weight_that_was_cut_out_of_a_sum_brings_no_term_of_it(
    cut: str, tmp_path: Path, standby: Standby
) -> None:
    assert codes(run(standby, BALANCED.format(cut=cut, term=""), tmp_path)) == []


def test_a_number_beside_such_a_weight_is_still_seen(tmp_path: Path, standby: Standby) -> None:
    text = BALANCED.format(cut=".item()", term=" + critic.weight.square().sum().item()")
    assert codes(run(standby, text, tmp_path)) == [("GS202", 10)]
