"""Your first minutes with GradSight: two faults wait in this file; torch names neither line."""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.linear(x))
        gate *= self.scale
        return gate * x


def compare_gradients() -> torch.Tensor:
    weight = torch.ones(3, requires_grad=True)
    weight.pow(2).sum().backward()
    first = weight.grad
    weight.pow(3).sum().backward()
    return weight.grad - first


def train(steps: int = 3) -> None:
    model = Gate(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        x = torch.randn(8, 4)
        loss = (model(x) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    print(compare_gradients())
    train()
