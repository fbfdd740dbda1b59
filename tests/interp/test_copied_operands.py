"""Products of many dimensions: which operands torch saves as they are, and which it copies first."""

from __future__ import annotations

import pytest

from tests.interp.checking import check
from tests.interp.running import refused, safe

MADE = "made = nn.Linear(6, 6)(torch.randn({batch}, 5, 6)).view({batch}, 5, 2, 3)"
WHOLE = "made = nn.Linear(3, 3)(torch.randn(2, 2, 5, 3))"
FLAT = "made = nn.Linear(3, 3)(torch.randn(2, 5, 3))"
MODIFIED = "modified by an inplace operation"


@pytest.mark.parametrize(
    "view", ["transpose(1, 2)", "swapaxes(2, 1)", "permute(0, 2, 1, 3)", "movedim(2, 1)"]
)
def test_heads_brought_to_the_front_are_copied_by_a_product(view: str) -> None:
    safe(f"""
        {MADE.format(batch=4)}
        heads = made.{view}
        query = torch.randn(4, 2, 5, 3, requires_grad=True)
        weights = torch.matmul(query, heads.transpose(2, 3)).softmax(-1)
        heads += 1
        weights.sum().backward()
    """)


@pytest.mark.parametrize("view", ["transpose(2, 3)", "transpose(-1, -2)", "mT", "permute(0, 1, 3, 2)"])
def test_an_operand_whose_last_dimensions_are_swapped_is_saved_itself(view: str) -> None:
    refused(
        f"""
        {WHOLE}
        query = torch.randn(2, 2, 5, 3, requires_grad=True)
        weights = query @ made.{view}
        made += 1  # GS101
        weights.sum().backward()
        """,
        MODIFIED,
    )


@pytest.mark.parametrize("view", ["transpose(1, 2)", "permute(0, 2, 1)"])
def test_an_operand_of_three_dimensions_is_saved_itself(view: str) -> None:
    refused(
        f"""
        {FLAT}
        query = torch.randn(2, 5, 3, requires_grad=True)
        weights = query @ made.{view}
        made += 1  # GS101
        weights.sum().backward()
        """,
        MODIFIED,
    )


def test_the_heads_of_a_batch_of_one_are_saved_themselves() -> None:
    refused(
        f"""
        {MADE.format(batch=1)}
        heads = made.transpose(1, 2)
        query = torch.randn(1, 2, 5, 3, requires_grad=True)
        weights = query @ heads.transpose(2, 3)
        heads += 1  # GS101
        weights.sum().backward()
        """,
        MODIFIED,
    )


def test_heads_of_an_unknown_batch_are_not_called_safe_to_write() -> None:
    report = check("""
        class Attention(nn.Module):
            def __init__(self, width, heads):
                super().__init__()
                self.heads = heads
                self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
            def forward(self, x):
                batch, length, width = x.shape
                query = self.query(x).view(batch, length, self.heads, -1).transpose(1, 2)
                key = self.key(x).view(batch, length, self.heads, -1).transpose(1, 2)
                weights = (query @ key.transpose(2, 3)).softmax(-1)
                key += 1
                return weights
    """)
    assert not report.findings


FOLDING = """
class Fold(nn.Module):
    def __init__(self, config, width):
        super().__init__()
        self.size = config.size
        self.norm, self.conv = nn.LayerNorm(width), nn.Conv2d(width, width, 1)
    def forward(self, x: torch.Tensor):
        size = self.size
        count = 4 // size
        patches = self.norm(x)
        maps = patches.view(x.shape[0] * count, count, size, size).transpose(1, 2)
        {}
        patches.data.mul_(2){}
        return self.conv(maps)
"""


def test_a_reshape_to_unknown_sizes_is_no_view_of_what_has_unknown_sizes() -> None:
    check(FOLDING.format("maps = maps.reshape(x.shape[0], x.shape[1], count * size, count * size)", ""))
    check(FOLDING.format("maps = maps.view_as(maps)", "  # GS105"))
