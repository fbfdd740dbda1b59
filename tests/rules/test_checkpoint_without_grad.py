"""GS211: leaving `use_reentrant` out means what torch makes of it, and the advice helps."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from gradsight.analysis import analyze
from gradsight.model.source import Source

PROGRAM = """import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

block, head = nn.Linear(2, 3), nn.Linear(3, 1)
hidden = checkpoint(block, torch.ones(4, 2){given})
head(hidden).pow(2).mean().backward()
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("given", ["", ", use_reentrant=True", ", use_reentrant=False"])
def test_it_is_reported_where_the_block_gets_no_gradient(given: str) -> None:
    block, head = nn.Linear(2, 3), nn.Linear(3, 1)
    how = {"use_reentrant": given.endswith("True")} if given else {}
    head(checkpoint(block, torch.ones(4, 2), **how)).pow(2).mean().backward()
    told = [finding.code for finding in analyze(Source("a.py", PROGRAM.format(given=given))).findings]
    assert told == (["GS211"] if block.weight.grad is None else [])
