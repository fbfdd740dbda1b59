"""What an operator with a gradient of zero hands on, while a penalty trains what computed it."""

from __future__ import annotations

import pytest
import torch

from tests.interp.checking import check

CODES = """
class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 4)
        self.decoder = nn.Linear(2, 8)

    def forward(self, x):
        mean, spread = self.encoder(x).chunk(2, 1)
        code = {code}
        return self.decoder(code), mean, spread

def train(loader):
    coder = Coder()
    optimizer = torch.optim.Adam(coder.parameters())
    for x in loader:
        back, mean, spread = coder(x.view(-1, 8))
        loss = F.mse_loss(back, x.view(-1, 8)) + {beside}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
PENALTY = "(mean.pow(2) + spread.exp() - spread).mean()"
ZEROS = ["torch.normal(mean, spread.exp())", "mean.round()", "torch.floor(mean + spread)"]


def coder(code: str, beside: str = PENALTY) -> str:
    return CODES.format(code=code, beside=beside)


@pytest.mark.parametrize("code", ZEROS)
def test_a_penalty_alone_trains_what_came_before(code: str) -> None:
    check(coder(f"{code}  # GS208"))


@pytest.mark.parametrize(
    "code",
    [
        "mean + spread.exp() * torch.randn_like(mean)",
        "mean + (mean.round() - mean).detach()",
        "torch.where(mean > 0, mean, mean.round())",
    ],
)
def test_a_code_that_carries_a_gradient_is_fine(code: str) -> None:
    check(coder(code))


def test_what_other_data_teaches_is_fine() -> None:
    check(coder("mean.round()", "F.mse_loss(mean, x.view(-1, 8)[:, :2])"))


@pytest.mark.parametrize("code", ZEROS)
def test_the_gradient_is_zero_on_torch(code: str) -> None:
    mean, spread = torch.randn(3, 2, requires_grad=True), torch.randn(3, 2, requires_grad=True)
    made = eval(code, {"torch": torch, "mean": mean, "spread": spread})
    made.sum().backward()
    assert mean.grad is not None
    assert mean.grad.abs().sum() == 0
