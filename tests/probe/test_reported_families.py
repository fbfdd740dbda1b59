"""What a run sees of faults that users reported: steps, clips and samples, with the line, and nothing beside the right program."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.probe.standby import Standby
from tests.probe.test_traps import codes, run

SHARED = """\
import torch
from torch import nn

body, first, second = nn.Linear(3, 2), nn.Linear(2, 1), nn.Linear(2, 1)
one = torch.optim.SGD([*body.parameters(), *first.parameters()], lr=0.1)
other = torch.optim.SGD({parameters}, lr=0.1)
for x in torch.randn(3, 5, 3):
    features = body(x)
    one.zero_grad()
    other.zero_grad()
    (first(features).mean() + second(features).mean()).backward()
    one.step()
    other.step()
"""

CLOSURE = """\
import torch
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=4)
x, y = torch.randn(9, 3), torch.randn(9, 1)
for _ in range(2):
    optimizer.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()

    def again():
        optimizer.zero_grad()
        loss = (net(x) - y).pow(2).mean()
        loss.backward()
        return loss

    optimizer.step({closure})
"""

ACCUMULATED = """\
import torch
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for number, x in enumerate(torch.randn(6, 5, 3)):
    (net(x).mean() / 3).backward()
    {each}
    if (number + 1) % 3 == 0:
        {once}
        optimizer.step()
        optimizer.zero_grad()
"""
CLIP = "nn.utils.clip_grad_norm_(net.parameters(), 0.1)"

ARRAYS = """\
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Series(Dataset):
    def __init__(self, values):
        self.values = values

    def __len__(self):
        return 4

    def __getitem__(self, index):
        piece = torch.from_numpy(self.values[3 * index : 3 * index + 3]{copy})
        piece -= 0.5
        return piece

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(Series(np.random.rand(12).astype(np.float32)), batch_size=2)
for _ in range(3):
    for batch in loader:
        optimizer.zero_grad()
        net(batch).pow(2).mean().backward()
        optimizer.step()
"""

HELPER = """\
import torch
from torch import nn

def stage(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, outputs), nn.Tanh())

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = stage(3, 4)
        self.second = stage(4, 4)
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        return self.out({hidden})

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 5, 3):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("parameters", "told"),
    [("[*body.parameters(), *second.parameters()]", [("GS520", 13)]), ("second.parameters()", [])],
)
def test_parameters_of_two_optimizers_are_moved_twice(
    standby: Standby, tmp_path: Path, parameters: str, told: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, SHARED.format(parameters=parameters), tmp_path)) == told


@pytest.mark.parametrize(("closure", "told"), [("lambda: loss", [("GS520", 18)]), ("again", [])])
def test_a_closure_that_computes_nothing_is_reported(
    standby: Standby, tmp_path: Path, closure: str, told: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, CLOSURE.format(closure=closure), tmp_path)) == told


@pytest.mark.parametrize(("each", "once", "told"), [(CLIP, "pass", [("GS513", 8)]), ("pass", CLIP, [])])
def test_a_clip_after_each_backward_of_an_accumulation_is_reported(
    standby: Standby, tmp_path: Path, each: str, once: str, told: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, ACCUMULATED.format(each=each, once=once), tmp_path)) == told


@pytest.mark.parametrize(("copy", "told"), [("", [("GS107", 15)]), (".copy()", [])])
def test_samples_that_lie_in_an_array_change_with_it(
    standby: Standby, tmp_path: Path, copy: str, told: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, ARRAYS.format(copy=copy), tmp_path)) == told


@pytest.mark.parametrize(
    ("hidden", "told"), [("self.first(x)", [("GS517", 11)]), ("self.second(self.first(x))", [])]
)
def test_a_layer_that_a_helper_made_and_nothing_uses_is_reported(
    standby: Standby, tmp_path: Path, hidden: str, told: list[tuple[str, int]]
) -> None:
    assert codes(run(standby, HELPER.format(hidden=hidden), tmp_path)) == told


FAILING = """\
import torch
from torch import nn

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(2, 5, 3):
    for _ in range(4):
        net(x).exp().mean().backward()
    loss = net(x).exp().mean()
    loss.backward()
    loss.backward()
    optimizer.step()
"""


def test_a_program_that_fails_is_not_asked_for_the_steps_it_did_not_come_to(
    standby: Standby, tmp_path: Path
) -> None:
    assert "GS512" not in {code for code, _ in codes(run(standby, FAILING, tmp_path))}
