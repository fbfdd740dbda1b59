"""What scaled_dot_product_attention returns lies in memory as its query does, unless it is computed as products of matrices."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.interp.checking import check
from tests.interp.running import refused, run, safe

MODIFIED = "modified by an inplace operation"
HEADS = "query, key, value = (torch.randn(2, 5, 3, 8, requires_grad=True).transpose(1, 2) for _ in range(3))"
IN_FRONT = "query, key, value = (torch.randn(2, 3, 5, 8, requires_grad=True) for _ in range(3))"


@pytest.mark.parametrize("merged", ["reshape(2, 5, 24)", "reshape(2, -1, 24)", "flatten(2)", "contiguous()"])
def test_heads_merged_behind_attention_are_the_memory_that_attention_saved(merged: str) -> None:
    refused(
        f"""
        {HEADS}
        heads = F.scaled_dot_product_attention(query, key, value)
        merged = heads.transpose(1, 2).{merged}
        merged += 1  # GS101
        merged.sum().backward()
        """,
        MODIFIED,
    )


def test_heads_of_a_query_that_is_contiguous_are_merged_in_a_copy() -> None:
    safe(f"""
        {IN_FRONT}
        heads = F.scaled_dot_product_attention(query, key, value)
        merged = heads.transpose(1, 2).reshape(2, 5, 24)
        merged += 1
        merged.sum().backward()
    """)


@pytest.mark.parametrize("options", ["dropout_p=0.1", "attn_mask=torch.zeros(5, 5, requires_grad=True)"])
def test_attention_that_is_computed_as_products_is_laid_out_anew(options: str) -> None:
    safe(f"""
        {HEADS}
        heads = F.scaled_dot_product_attention(query, key, value, {options})
        merged = heads.transpose(1, 2).reshape(2, 5, 24)
        merged += 1
        merged.sum().backward()
    """)


def test_nothing_is_called_safe_where_it_is_not_known_how_attention_is_computed() -> None:
    report = check(f"""
        import sys
        {HEADS}
        heads = F.scaled_dot_product_attention(query, key, value, dropout_p=float(sys.argv[1]))
        merged = heads.transpose(1, 2).reshape(2, 5, 24)
        merged += 1
        merged.sum().backward()
    """)
    assert [finding.code for finding in report.findings] == []


def test_exchanging_two_dimensions_twice_gives_dense_memory_again() -> None:
    refused(
        """
        gate = torch.sigmoid(torch.randn(2, 5, 3, requires_grad=True))
        same = gate.transpose(1, 2).transpose(1, 2).reshape(10, 3)
        same += 1  # GS101
        same.sum().backward()
        """,
        MODIFIED,
    )


def test_a_forward_that_merges_its_heads_writes_what_attention_saved() -> None:
    check("""
        class Attention(nn.Module):
            def __init__(self, width, heads):
                super().__init__()
                self.heads = heads
                self.query, self.both, self.out = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)

            def forward(self, x: torch.Tensor):
                batch = x.shape[0]
                size = x.shape[-1] // self.heads
                query = self.query(x).view(batch, -1, self.heads, size).transpose(1, 2)
                both = self.both(x).view(batch, -1, self.heads, size).transpose(1, 2)
                seen = F.scaled_dot_product_attention(query, both, both, dropout_p=0.0)
                seen = seen.transpose(1, 2).reshape(batch, -1, self.heads * size)
                seen += 1  # GS101
                return self.out(seen)
    """)


OPTIONS = [
    "mask: torch.Tensor | None = None",
    "mask=None",
    "mask: torch.Tensor | None = None, is_causal: bool = False",
]


@pytest.mark.parametrize("options", OPTIONS)
def test_heads_of_one_projection_follow_their_query_without_its_gaps(options: str) -> None:
    given = "is_causal=is_causal" if "causal" in options else ""
    program = dedent(f"""
        class Attention(nn.Module):
            def __init__(self, width, heads=2, drop=0.0):
                super().__init__()
                self.heads = heads
                self.parts, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
                self.drop = nn.Dropout(drop)

            def forward(self, x: torch.Tensor, {options}):
                batch, length, width = x.shape
                parts = self.parts(x).reshape(batch, length, 3, self.heads, width // self.heads)
                query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
                chance = self.drop.p if self.training else 0.0
                seen = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=chance, {given})
                seen = seen.transpose(1, 2).reshape(batch, length, width)
                seen *= 2  # GS101
                return self.out(seen)
    """)
    check(program)
    with pytest.raises(RuntimeError, match=MODIFIED):
        run(program + "Attention(8)(torch.randn(2, 5, 8)).sum().backward()\n")


@pytest.mark.parametrize("causal", ["False", "True"])
def test_attention_keeps_its_result_whether_it_is_causal_or_not(causal: str) -> None:
    program = dedent("""
        class Attention(nn.Module):
            def forward(self, x: torch.Tensor, is_causal: bool = False):
                x = x.reshape(2, 2, 5, 8)
                seen = F.scaled_dot_product_attention(x, x, x, is_causal=is_causal)
                seen *= 2  # GS101
                return seen
    """)
    check(program)
    with pytest.raises(RuntimeError, match=MODIFIED):
        run(
            program + f"Attention()(torch.randn(2, 2, 5, 8, requires_grad=True), {causal}).sum().backward()\n"
        )
