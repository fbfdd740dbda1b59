"""What does not lie in memory as an operator needs it is copied, and the copy is saved: torch says which write backward meets."""

from __future__ import annotations

import warnings
from itertools import product

import pytest

from gradsight.analysis import analyze
from gradsight.model.source import Source

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n"
MADE = {
    "dense": "torch.rand(4, 4, 4, requires_grad=True) * 2",
    "turned": "(torch.rand(4, 4, 4, requires_grad=True) * 2).transpose(0, 1)",
    "turned within": "(torch.rand(4, 4, 4, requires_grad=True) * 2).transpose(1, 2)",
    "the first of them": "(torch.rand(6, 4, 4, requires_grad=True) * 2)[:4]",
    "every other": "(torch.rand(8, 4, 4, requires_grad=True) * 2)[::2]",
    "a part of each row": "(torch.rand(4, 4, 8, requires_grad=True) * 2)[..., :4]",
    "turned and reversed": "(torch.rand(4, 4, 4, requires_grad=True) * 2).transpose(0, 1).flip(0)",
    "turned and parted": "(torch.rand(4, 4, 4, requires_grad=True) * 2).transpose(0, 1).reshape(4, 2, 2, 4).flatten(1, 2)",
    "turned and merged": "(torch.rand(4, 4, 2, 2, requires_grad=True) * 2).transpose(1, 2).reshape(4, 2, 8)[..., :4].repeat(1, 2, 1)",
    "turned and shifted": "(torch.rand(4, 4, 4, requires_grad=True) * 2).transpose(0, 1) + torch.rand(4)",
}
USED = {
    "Linear": "nn.Linear(4, 3)(z)",
    "GroupNorm": "nn.GroupNorm(2, 4)(z)",
    "InstanceNorm1d": "nn.InstanceNorm1d(4)(z)",
    "LSTM": "nn.LSTM(4, 4)(z)[0]",
    "GRU": "nn.GRU(4, 4)(z)[0]",
    "MultiheadAttention": "nn.MultiheadAttention(4, 2)(z, z, z)[0]",
    "Bilinear": "nn.Bilinear(4, 4, 2)(z, z)",
    "einsum": "torch.einsum('abc,cd->abd', z, torch.rand(4, 3, requires_grad=True))",
    "LayerNorm": "nn.LayerNorm(4)(z)",
    "exp": "torch.sin(z)",
}
UNCERTAIN = {"turned and parted", "turned and reversed", "every other"}
"""How they lie is not followed: nothing is said there of operators that copy."""


def raises(text: str) -> bool:
    try:
        exec(text, {})
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error)
    return False


@pytest.mark.parametrize(("made", "used"), product(MADE, USED))
def test_a_write_is_reported_where_torch_raises_and_nowhere_else(made: str, used: str) -> None:
    text = f"{HEAD}z = {MADE[made]}\ny = {USED[used]}\nz += 1\ny.sum().backward()\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raised = raises(text)
    said = [each.code for each in analyze(Source("a.py", text)).findings if each.severity == "error"]
    assert said == ["GS101"] * raised or (made in UNCERTAIN and said == [])
