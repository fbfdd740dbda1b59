"""GS212: NaN that is masked in a result, and not in its gradient."""

from __future__ import annotations

import pytest
import torch

from gradsight.detect.masked_nans import KEEPS_ZERO, SHIFTING, STEEP
from tests.interp.checking import check
from tests.interp.running import run

POOLED = """
net = nn.Linear(3, 4)
features = net(torch.randn(2, 5, 3))
mask = torch.randint(0, 2, (2, 5, 1)).float()
total, count = (features * mask).sum(1), mask.sum(1)
zeros, ones = torch.zeros_like(total), torch.ones_like(count)
{pooled}
pooled.sum().backward()
"""


@pytest.mark.parametrize(
    "pooled",
    [
        "pooled = torch.where(count == 0, zeros, total / count)  # GS212",
        "pooled = torch.where(count > 0, total / count, zeros)  # GS212",
        "pooled = (total / count).where(count != 0, zeros)  # GS212",
        "pooled = torch.where(count < 0.5, zeros, total / (2 * count))  # GS212",
        "pooled = (total / count).masked_fill(count == 0, 0.0)  # GS212",
        "pooled = torch.nan_to_num(total / count)  # GS212",
        "energy = total.square()\npooled = torch.where(energy > 0, energy.sqrt(), zeros)  # GS212",
        "energy = total.square()\npooled = torch.where(energy > 1e-6, 1 + energy.log(), zeros)  # GS212",
    ],
)
def test_what_is_masked_by_its_own_divisor_is_reported(pooled: str) -> None:
    check(POOLED.format(pooled=pooled))


@pytest.mark.parametrize(
    "pooled",
    [
        "pooled = torch.where(count == 0, zeros, total / count.clamp(min=1))",
        "pooled = torch.where(count == 0, zeros, total / (count + 1e-6))",
        "pooled = torch.where(count == 0, zeros, total / torch.where(count == 0, ones, count))",
        "pooled = torch.where(total > 0, total, total / count.clamp(min=1))",
        "pooled = torch.where(count == 3, zeros, total / count)",
        "pooled = torch.where(count == 0, total, zeros)",
        "pooled = torch.where(count == 0, total, zeros / count)",
        "pooled = torch.where(total > 0, total, total.exp() - 1)",
        "pooled = torch.nan_to_num(total)",
        "pooled = torch.nan_to_num(total / (count + 1e-6))",
        "pooled = total.masked_fill(count == 0, 0.0) / 5",
        "shown = torch.where(count == 0, zeros, total / count)\npooled = total",
    ],
)
def test_what_is_never_divided_by_zero_is_not(pooled: str) -> None:
    check(POOLED.format(pooled=pooled))


SELECTED = """
net = nn.Linear(3, 4)
features = net(torch.randn(2, 5, 3))
mask = torch.tensor([[0.0] * 5, [1.0] * 5])[..., None]
kept = {kept}
count = mask.sum(1)
pooled = torch.where(count == 0, torch.zeros(2, 4), kept.sum(1) / count){said}
pooled.sum().backward()
assert net.weight.grad.isnan().any() == {is_nan}
"""


@pytest.mark.parametrize(
    ("kept", "said", "is_nan"),
    [
        ("torch.where(mask > 0, features, torch.zeros(2, 5, 4))", "", False),
        ("features.masked_fill(mask == 0, 0.0)", "", False),
        ("features * mask", "  # GS212", True),
    ],
)
def test_what_was_selected_before_drops_the_nan(kept: str, said: str, is_nan: bool) -> None:
    program = SELECTED.format(kept=kept, said=said, is_nan=is_nan)
    check(program)
    run(program)


CALLS: dict[str, tuple[object, ...]] = {
    "pow": (2,), "add": (1,), "clamp": (1,), "clamp_min": (1,), "clip": (1,), "maximum": (torch.ones(3),), "unsqueeze": (0,),
    "view": (3,), "reshape": (3,), "expand": (3,), "to": (torch.float64,), "softmax": (0,),
}  # fmt: skip
"""What operators are given beside the tensor, where they need something."""


def applied(name: str, operand: torch.Tensor) -> torch.Tensor:
    if name == "where":
        return torch.where(operand == 0, torch.ones(3), operand)
    function = getattr(operand, name, None) or getattr(torch.nn.functional, name)
    is_function = not hasattr(operand, name)
    return function(operand, *CALLS.get(name, ())) if is_function else function(*CALLS.get(name, ()))


@pytest.mark.parametrize("name", sorted(STEEP))
def test_torch_has_an_infinite_derivative_where_the_operand_is_zero(name: str) -> None:
    operand = torch.zeros(3, requires_grad=True)
    applied(name, operand).sum().backward()
    assert operand.grad is not None
    assert not operand.grad.isfinite().any()


@pytest.mark.parametrize("name", sorted(KEEPS_ZERO))
def test_torch_leaves_zero_as_it_is(name: str) -> None:
    assert not applied(name, torch.zeros(3)).any()


@pytest.mark.parametrize("name", sorted(SHIFTING))
def test_torch_makes_of_zero_what_can_be_divided_by(name: str) -> None:
    assert (applied(name, torch.zeros(3)) > 0).all()
