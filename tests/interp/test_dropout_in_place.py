"""Dropout in place whose probability is not written in the text: with 0 it writes nothing."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.interp.checking import check

STARTED = """
import argparse

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--drop", type=float{default})
    args = parser.parse_args()
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Dropout(args.drop, inplace=True), nn.Linear(3, 3)){claim}
    net(torch.randn(2, 3)).sum().backward()

if __name__ == "__main__":
    main()
"""


def test_a_probability_that_is_zero_by_default_overwrites_nothing() -> None:
    check(STARTED.format(default=", default=0.0", claim=""))


def test_one_that_is_not_zero_by_default_overwrites_what_relu_saved() -> None:
    (finding,) = check(STARTED.format(default=", default=0.1", claim="  # GS101")).findings
    assert finding.severity == "error"


def test_one_of_which_nothing_is_known_is_assumed_to_be_above_zero() -> None:
    (finding,) = check(STARTED.format(default="", claim="  # GS101")).findings
    assert finding.severity == "warning"
    assert "probability is above 0" in finding.assumption


@pytest.mark.parametrize(("chance", "is_refused"), [(0.0, False), (0.5, True)])
def test_torch_refuses_it_for_a_probability_above_zero_alone(chance: float, is_refused: bool) -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Dropout(chance, inplace=True), nn.Linear(3, 3))
    loss = net(torch.randn(2, 3)).sum()
    if is_refused:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    else:
        loss.backward()
