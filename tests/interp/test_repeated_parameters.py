"""Parameters that are twice in one list of an optimizer: torch warns, and moves them twice."""

from __future__ import annotations

import warnings

import pytest
import torch

from tests.interp.checking import check

GIVEN = """
from itertools import chain

def fit(first, second, loader):
    opt = torch.optim.Adam({listed}, lr=1e-3){claim}
    for s, t in loader:
        opt.zero_grad()
        (F.mse_loss(first(s), t) + F.mse_loss(second(s), t)).backward()
        opt.step()
"""


@pytest.mark.parametrize(
    "listed",
    [
        "list(first.parameters()) + list(first.parameters())",
        "[*first.parameters(), *first.parameters()]",
        "chain(first.parameters(), first.parameters())",
        "[{'params': [*first.parameters(), *first.parameters()]}]",
    ],
)
def test_a_network_that_is_listed_twice_is_moved_twice(listed: str) -> None:
    check(GIVEN.format(listed=listed, claim="  # GS520"))


@pytest.mark.parametrize(
    "listed",
    [
        "list(first.parameters()) + list(second.parameters())",
        "[p for p in first.parameters() if p.ndim > 1] + [p for p in first.parameters() if p.ndim < 2]",
        "[*(p for n, p in first.named_parameters() if 'bias' in n), *(p for n, p in first.named_parameters() if 'bias' not in n)]",
        "[*filter(lambda p: p.ndim > 1, first.parameters()), *second.parameters()]",
    ],
)
def test_lists_of_different_parameters_are_right(listed: str) -> None:
    check(GIVEN.format(listed=listed, claim=""))


KNOWN = """
net = nn.Linear(2, 1)
opt = torch.optim.SGD({listed}, lr=0.1){claim}
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(4, 2)).mean().backward()
    opt.step()
"""


def test_a_parameter_beside_all_of_its_module_is_moved_twice() -> None:
    check(KNOWN.format(listed="[*net.parameters(), net.weight]", claim="  # GS520"))
    check(KNOWN.format(listed="[*net.parameters()]", claim=""))
    check(KNOWN.format(listed="list({*net.parameters(), net.weight})", claim=""))


def test_torch_applies_the_gradient_once_for_each() -> None:
    weight = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        optimizer = torch.optim.SGD([weight, weight], lr=0.1)
    weight.sum().backward()
    optimizer.step()
    assert torch.allclose(weight.detach(), torch.full((2,), 0.8))
    assert any("duplicate parameters" in str(one.message) for one in heard)
