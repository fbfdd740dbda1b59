"""Unknown models that are frozen where they are copied: what they compute has no graph."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

COPIED = """
import copy

def project(G, target):
    G = copy.deepcopy(G).eval(){frozen}
    w = G.mapping(torch.randn(4, 8), None)
    w = w.cpu().numpy(){said}
    return w, list(G.named_buffers())
"""


@pytest.mark.parametrize("frozen", [".requires_grad_(False)", ".requires_grad_(False).to('cpu')"])
def test_what_a_frozen_copy_computes_is_turned_into_an_array(frozen: str) -> None:
    check(COPIED.format(frozen=frozen, said=""))


@pytest.mark.parametrize("frozen", ["", ".requires_grad_(True).to('cpu')"])
def test_what_another_copy_computes_is_not(frozen: str) -> None:
    check(COPIED.format(frozen=frozen, said="  # GS202"))
