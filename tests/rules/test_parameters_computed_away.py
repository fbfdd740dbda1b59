"""GS601 in a file that only defines models: what is computed from a parameter, or merely requires grad, is none."""

from __future__ import annotations

import pytest
import torch

from gradsight.analysis import analyze
from gradsight.model.source import Source

MODEL = """import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.scale = {scale}

    def forward(self, x):
        return x * self.weight * self.scale
"""
LOST = [
    "nn.Parameter(torch.ones(dim)).to(torch.float64)",
    "nn.Parameter(torch.ones(dim)).half()",
    "nn.Parameter(torch.ones(dim)).unsqueeze(0)",
    "nn.Parameter(torch.ones(dim)) * 0.5",
    "1 + 0.1 * nn.Parameter(torch.ones(dim))",
    "torch.exp(nn.Parameter(torch.ones(dim)))",
    "torch.ones(dim, requires_grad=True)",
]
KEPT = [
    "nn.Parameter(torch.ones(dim))",
    "nn.Parameter(torch.ones(dim)).to(torch.float32)",
    "nn.Parameter(torch.ones(dim) * 0.5)",
    "nn.ParameterList([nn.Parameter(torch.ones(dim))])[0]",
    "torch.ones(dim)",
    "torch.ones(dim, requires_grad=False)",
    "self.weight",
]


def parameters(scale: str) -> int:
    """How many parameters torch finds in such a block."""
    scope: dict[str, type[torch.nn.Module]] = {}
    exec(MODEL.format(scale=scale), scope)
    return len(list(scope["Block"](3).parameters()))


@pytest.mark.parametrize("scale", LOST)
def test_a_parameter_that_nobody_will_know_is_told(scale: str) -> None:
    assert parameters(scale) == 1
    told = [
        (finding.code, finding.span.line)
        for finding in analyze(Source("a.py", MODEL.format(scale=scale))).findings
    ]
    assert told == [("GS601", 8)]


@pytest.mark.parametrize("scale", KEPT)
def test_what_is_registered_or_not_to_be_learned_is_left_alone(scale: str) -> None:
    assert not analyze(Source("a.py", MODEL.format(scale=scale))).findings
