"""Probabilities that were put together before a loss that takes scores."""

from __future__ import annotations

import pytest

from tests.interp.checking import check

STEPS = """
        import torch
        import torch.nn.functional as F
        from torch import nn

        layer = nn.Linear(8, 2)
        x, y = torch.randn(3, 8), torch.randint(0, 2, (9,))
"""


@pytest.mark.parametrize(
    ("made", "joined", "is_reported"),
    [
        ("F.softmax(layer(x), dim=1)", "torch.stack(outs, dim=1).reshape(-1, 2)", True),
        ("F.softmax(layer(x), dim=1)", "torch.cat(outs)", True),
        ("layer(x)", "torch.cat(outs)", False),
        ("layer(F.softmax(x, dim=1))", "torch.cat(outs)", False),
        ("F.softmax(layer(x), dim=1)", "torch.cat([*outs[1:], layer(x)])", False),
    ],
)
def test_probabilities_of_several_steps(made: str, joined: str, is_reported: bool) -> None:
    check(f"""{STEPS}
        outs = [{made} for _ in range(3)]
        loss = F.cross_entropy({joined}, y)  {"# GS605" if is_reported else ""}
        loss.backward()
    """)


@pytest.mark.parametrize(("made", "is_reported"), [("layer(x).softmax(1)", True), ("layer(x)", False)])
def test_probabilities_that_are_written_into_a_buffer(made: str, is_reported: bool) -> None:
    check(f"""{STEPS}
        outs = torch.zeros(3, 3, 2)
        for step in range(3):
            outs[:, step] = {made}
        loss = F.cross_entropy(outs.reshape(-1, 2), y)  {"# GS605" if is_reported else ""}
        loss.backward()
    """)
