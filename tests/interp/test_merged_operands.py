"""Products that merge dimensions: what cannot be merged is copied, and a write to the operand leaves the copy alone."""

from __future__ import annotations

import pytest
import torch

from gradsight.analysis import analyze
from gradsight.model.settings import Settings
from gradsight.model.source import Source
from tests.interp.checking import check

SHOWN = {
    "x": True,
    "x.transpose(1, 2)": False,
    "x.permute(0, 2, 1)": False,
    "x.permute(1, 2, 0)": True,
    "x.mT": False,
    "x[:, 1:]": False,
    "x[..., 1:]": True,
    "x[:, 0]": True,
    "x.narrow(1, 0, 2)": False,
    "x.transpose(1, 2).transpose(1, 2)": True,
    "x.transpose(1, 2)[:1]": True,
    "x.transpose(1, 2)[:, 1:]": False,
    "x.transpose(1, 2) * 2": False,
    "nn.Dropout(0.5)(x.transpose(1, 2))": False,
    "x.reshape(2, 2, 2, 4).permute(0, 2, 1, 3)": False,
    "x.reshape(2, 2, 2, 4).permute(1, 2, 0, 3)[0]": False,
    "x.reshape(2, 2, 2, 4)[:, 0]": False,
    "x.transpose(1, 2).reshape(2, 4, 4)": False,
}
USES = (
    "nn.Linear(h.shape[-1], 3)(h)",
    "F.linear(h, torch.randn(3, h.shape[-1], requires_grad=True))",
    "h @ torch.randn(h.shape[-1], 3, requires_grad=True)",
)


def program(shown: str, use: str) -> str:
    return f"""
import torch
import torch.nn.functional as F
from torch import nn

x = torch.randn(2, 4, 4, requires_grad=True) * 1
h = {shown}
y = {use}
h.mul_(2)
(y.sum() + h.sum()).backward()
"""


def raises(text: str) -> bool:
    try:
        exec(compile(text, "program", "exec"), {})
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error)
    return False


def is_reported(text: str) -> bool:
    return any(one.code == "GS101" for one in analyze(Source("program.py", text), Settings()).findings)


@pytest.mark.parametrize("shown", SHOWN)
def test_a_write_to_an_operand_is_reported_where_the_operand_itself_was_saved(shown: str) -> None:
    torch.manual_seed(0)
    for use in USES:
        text = program(shown, use)
        assert raises(text) is SHOWN[shown]
        assert is_reported(text) is SHOWN[shown]


FORWARD = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.q, self.k = nn.GroupNorm(2, 4), nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        {first}
        y = self.q(x)
        x += 1
        return y + self.k(x)
"""


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("x = self.norm(x)", True),
        ("x = self.norm(x).transpose(1, 2)", False),
        ("x = self.norm(x).permute(0, 2, 3, 1)", False),
        ("x = self.norm(x).transpose(0, 1)", True),
    ],
)
def test_a_batch_whose_size_is_not_known_is_taken_to_have_several_members(first: str, expected: bool) -> None:
    # `transpose(0, 1)` may be that of a matrix, which is saved as it is.
    assert is_reported(FORWARD.format(first=first)) is expected


def test_heads_that_are_taken_from_a_permuted_tensor_are_copied_where_their_batches_are_merged() -> None:
    text = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, dim=8, heads=2):
        super().__init__()
        self.heads = heads
        self.qk = nn.Linear(dim, dim * 2)
    def forward(self, x):
        B, N, C = x.shape
        qk = self.qk(x).reshape(B, N, 2, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k = qk[0], qk[1]
        y = q @ k.transpose(-2, -1)
        k.clamp_(min=0)
        return y
"""
    space: dict[str, object] = {}
    exec(text, space)
    make = space["Attention"]
    assert callable(make)
    make()(torch.randn(2, 5, 8)).sum().backward()
    assert not is_reported(text)


SPREAD = """
def loss(query, weight):
    keys = weight.reshape(SIZE, 3, 6, 5) * 2
    scores = torch.matmul(query.reshape(2, 3, 4, 5), keys.transpose(-2, -1))
    keys.mul_(2)HERE
    return scores.sum()

loss(torch.ones(24, 5, requires_grad=True), torch.ones(COUNT, 5, requires_grad=True)).backward()
"""


def test_batch_that_is_repeated_for_the_other_operand_is_copied() -> None:
    check(SPREAD.replace("SIZE", "2").replace("COUNT", "36").replace("HERE", "  # GS101"))
    check(SPREAD.replace("SIZE", "1").replace("COUNT", "18").replace("HERE", ""))
