"""torchdiffeq: what a solution holds, and what its backward reaches."""

import torch
from recorder import log
from torch import nn
from torchdiffeq import odeint, odeint_adjoint


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 2)

    def forward(self, t, y):
        return self.net(y)


class Pair(Field):
    def forward(self, t, y):
        first, second = y
        return super().forward(t, first), second


def main():
    for solve in (odeint, odeint_adjoint):
        for field in (Field(), Pair()):
            start = torch.ones(3, 2, requires_grad=True)
            y0 = (start, torch.ones(4)) if isinstance(field, Pair) else start
            found = solve(field, y0, torch.linspace(0, 1, 3), method="euler")
            one = found[0] if isinstance(field, Pair) else found
            log(f"solution: {tuple(one.shape)}, {one.requires_grad}, {torch.equal(one[0], start)}")
            one[-1].sum().backward()
            log(f"gradients: {start.grad is not None}, {field.net.weight.grad is not None}")
