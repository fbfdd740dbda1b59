"""What a fact card says about refusals, held against torch."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch

from gradsight.ops.table import shipped
from gradsight.session.fact_card import FOR_LEAVES, fact_card

CALLS: dict[str, Callable[[torch.Tensor], object]] = {
    "Tensor.__deepcopy__": copy.deepcopy,
    "Tensor.grad_dtype": lambda tensor: tensor.grad_dtype,
    "Tensor.requires_grad_": lambda tensor: tensor.requires_grad_(False),
}


@pytest.mark.parametrize("name", sorted(FOR_LEAVES))
def test_what_is_for_leaves_takes_a_leaf_and_refuses_a_result(name: str) -> None:
    fact = shipped().find(name)
    assert fact is not None
    assert "raises if `self` requires grad and is not a leaf" in fact_card(fact, "")
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError):
        CALLS[name](leaf * 2)
    CALLS[name](leaf)
