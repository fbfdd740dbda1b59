"""Training under DistributedDataParallel: the wrapper's own work is no fault of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradsight.probe.standby import Standby
from tests.probe.test_traps import codes, run

PROGRAM = """\
import torch
from torch import nn
from torch.distributed import FileStore, destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.used = nn.Linear(3, 1)
        self.spare = nn.Linear(3, 1)

    def forward(self, x, which):
        return getattr(self, which)(self.body(x))


init_process_group("gloo", store=FileStore("STORE", 1), rank=0, world_size=1)
model = DistributedDataParallel(Net(), find_unused_parameters=UNUSED)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for which in WHICH:
    optimizer.zero_grad()
    model(torch.ones(2, 3), which).sum().backward()
    optimizer.step()
destroy_process_group()
"""


@pytest.mark.parametrize("which", [("used", "used"), ("used", "spare", "used")])
def test_parts_that_a_wrapper_was_told_of_are_no_fault(
    standby: Standby, tmp_path: Path, which: tuple[str, ...]
) -> None:
    text = PROGRAM.replace("WHICH", repr(which)).replace("UNUSED", "True")
    assert codes(run(standby, text.replace("STORE", str(tmp_path / "store")), tmp_path)) == []


def test_parts_that_it_was_not_told_of_are_one(standby: Standby, tmp_path: Path) -> None:
    text = PROGRAM.replace("WHICH", "('used', 'used')").replace("UNUSED", "False")
    found = codes(run(standby, text.replace("STORE", str(tmp_path / "store")), tmp_path))
    assert [code for code, _ in found] == ["GS406"]
