"""What is at fault only where many processes run, in programs that start them and in those that do not."""

from __future__ import annotations

from gradsight.analysis import analyze
from gradsight.model import Source

MODEL = """
import torch
import torch.distributed as dist
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.many = dist.is_initialized() and dist.get_world_size() > 1
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        x = self.body(x)
        if self.many:
            x = x.split([1, 1])[0]
        x.clamp_(min=0)
        return x.sum()
"""
INSIDE = MODEL.replace(
    "            x = x.split([1, 1])[0]\n", "            x = x.split([1, 1])[0]\n            x += 1\n"
)
START = """

dist.init_process_group("gloo")
net = Net()
net(torch.ones(2, 4)).backward()
"""


def check(text: str, *expected: str) -> None:
    assert [finding.severity for finding in analyze(Source("net.py", text)).findings] == list(expected)


def test_a_line_that_one_process_executes_too_is_information() -> None:
    check(MODEL, "info")


def test_a_program_that_starts_processes_raises_there() -> None:
    check(MODEL + START, "error")


def test_a_line_that_only_one_of_many_executes_is_at_fault_whoever_starts_them() -> None:
    check(INSIDE.replace("        x.clamp_(min=0)\n", ""), "error")
