"""How many arguments a method of tensors takes: a queue has a `put`, too, and gives it fewer."""

from __future__ import annotations

import pytest
import torch

from gradsight.interp.tensors.fact_selection import takes
from gradsight.ops.fact import OpFact
from gradsight.ops.table import shipped


def method(name: str) -> OpFact:
    fact = shipped().find(f"Tensor.{name}")
    assert fact is not None
    return fact


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("put", (torch.ones(2),)), ("lerp", (torch.ones(2),)), ("log", (torch.ones(2),)), ("masked_fill", (1,))],
)
def test_torch_refuses_what_a_method_does_not_take(name: str, arguments: tuple[object, ...]) -> None:
    assert not takes(method(name), len(arguments))
    with pytest.raises(TypeError):
        getattr(torch.ones(2), name)(*arguments)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("put", (torch.tensor([0]), torch.ones(1))), ("add", (1,)), ("sum", (0,)), ("view", (2, 1)), ("repeat", (2,)), ("max", (0,)),
        ("clamp", (0,)), ("transpose", (0, 0)), ("reshape", (2, 1)), ("split", (1,)), ("flip", (0,)), ("std", (0,)), ("norm", (2,)),
        ("where", (torch.ones(2) > 0, 0.0)), ("masked_fill", (torch.ones(2) > 0, 0.0)), ("index_select", (0, torch.tensor([0]))),
    ],
)  # fmt: skip
def test_torch_performs_what_a_method_takes(name: str, arguments: tuple[object, ...]) -> None:
    assert takes(method(name), len(arguments))
    getattr(torch.ones(2), name)(*arguments)
