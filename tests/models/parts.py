"""What the recorded programs are made of."""

from __future__ import annotations

from typing import Any

import torch
from recorder import log
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class RecordedSGD(torch.optim.SGD):
    def step(self, closure: Any = None) -> Any:
        value = None
        if closure is not None:
            with torch.enable_grad():
                value = closure()
        log("step")
        super().step()
        return value

    def zero_grad(self, set_to_none: bool = True) -> None:
        log("zero_grad")
        super().zero_grad(set_to_none)


class RecordedSchedule(torch.optim.lr_scheduler.StepLR):
    def __init__(self, optimizer: Any) -> None:
        super().__init__(optimizer, 1)
        self.is_made = True

    def step(self, *args: Any) -> None:
        if hasattr(self, "is_made"):
            log("scheduler")
        super().step(*args)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, x: Any) -> Any:
        log("forward, training" if self.training else "forward, evaluating")
        return self.layer(x)


def loader(batches: int = 2) -> Any:
    return DataLoader(TensorDataset(torch.ones(2 * batches, 2), torch.ones(2 * batches, 1)), batch_size=2)
