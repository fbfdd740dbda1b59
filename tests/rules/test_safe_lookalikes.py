"""Programs that look like a hazard and are none: torch runs each and its gradients are exact, and nothing is said of it."""

from __future__ import annotations

import pytest

from gradsight.analysis import analyze
from gradsight.model import Source
from tests.rules.safe_lookalikes import SAFE_TRAINING
from tests.rules.safe_writes import SAFE_WRITES
from tests.rules.torch_run import run

SAFE = {**SAFE_TRAINING, **SAFE_WRITES}

HAZARDS = {
    "GS105 a product": ("GS105", "h.mul_(2)"),
    "GS105 a sum with what is learned": ("GS105", "h.add_(x)"),
    "GS105 a sum with itself": ("GS105", "h.add_(h)"),
    "GS105 a sum with a value of the graph": ("GS105", "h.sub_(h.mean())"),
}
SILENT_WRITES = {
    "relu by a negative number": "y = x.relu()\ny.data.mul_(-2)",
    "relu by an unknown sign": "y = x.relu()\ny.data.add_(1)",
    "exp by a positive number": "y = x.exp()\ny.data.mul_(2)",
    "restored from another": "y = x.exp()\nold = y.detach() * 2\ny.data.copy_(old)",
}
CHAIN = """
import torch
from torch import nn
class B0(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc0 = nn.Linear(2, 2)
    def forward(self, x):
        return self.fc0(x)
"""


def said(program: str) -> list[str]:
    return [
        finding.code
        for finding in analyze(Source("program.py", program)).findings
        if finding.severity != "hint"
    ]


def check(program: str) -> None:
    assert [event for event in run("program.py", program) if event.kind == "raises"] == []
    assert said(program) == []


@pytest.mark.parametrize("name", SAFE)
def test_a_safe_program_is_left_alone(name: str) -> None:
    check(SAFE[name])


def test_sixty_classes_of_inheritance_are_initialised() -> None:
    links = "".join(
        f"class B{k}(B{k - 1}):\n    def __init__(self):\n        super().__init__()\n        self.fc{k} = nn.Linear(2, 2)\n"
        for k in range(1, 60)
    )
    check(CHAIN + links + "B59()(torch.ones(1, 2)).sum().backward()\n")


@pytest.mark.parametrize("name", HAZARDS)
def test_a_write_that_the_gradient_should_know_of_is_reported(name: str) -> None:
    code, write = HAZARDS[name]
    text = f"import torch\nx = torch.ones(3, requires_grad=True)\nh = x * 2\nwith torch.no_grad():\n    {write}\nh.sum().backward()\n"
    assert said(text) == [code]


@pytest.mark.parametrize("name", SILENT_WRITES)
def test_a_change_that_backward_sees_is_reported(name: str) -> None:
    text = f"import torch\nx = torch.linspace(-1, 1, 4, requires_grad=True)\n{SILENT_WRITES[name]}\ny.sum().backward()\n"
    assert "GS104" in said(text)


def test_a_generator_step_behind_detach_is_told_as_a_cut() -> None:
    text = """
import torch
from torch import nn
G, D = nn.Linear(4, 4), nn.Linear(4, 1)
og = torch.optim.SGD(G.parameters(), lr=0.1)
for _ in range(3):
    og.zero_grad()
    D(G(torch.ones(2, 4)).detach()).mean().backward()
    og.step()
"""
    assert said(text) == ["GS203"]
