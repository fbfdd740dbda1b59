"""scaled_dot_product_attention keeps an operand itself if its rows are dense, in whatever order its other dimensions are."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize("written", [0, 1, 2])
def test_heads_that_were_brought_to_the_front_are_kept_themselves(written: int) -> None:
    leaves = [torch.randn(2, 5, 3, 8, requires_grad=True) for _ in range(3)]
    operands = [(leaf * 1).transpose(1, 2) for leaf in leaves]
    result = torch.nn.functional.scaled_dot_product_attention(*operands)
    with torch.no_grad():
        operands[written].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_what_attention_returns_can_be_reshaped_without_a_copy() -> None:
    operands = [torch.randn(2, 5, 3, 8, requires_grad=True).transpose(1, 2) for _ in range(3)]
    result = torch.nn.functional.scaled_dot_product_attention(*operands)
    assert result.transpose(1, 2).reshape(2, 5, 24).data_ptr() == result.data_ptr()
