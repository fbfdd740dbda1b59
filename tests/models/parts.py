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


def carries_graph(value: Any) -> bool:
    """Whether a tensor in a value requires grad."""
    if isinstance(value, torch.Tensor):
        return value.requires_grad
    if isinstance(value, dict):
        return any(carries_graph(one) for one in value.values())
    if isinstance(value, (list, tuple)):
        return any(carries_graph(one) for one in value)
    return False


def children(module: Any) -> str:
    """The parts of a module in their order."""
    return " ".join(name for name, _ in module.named_children())


def kinds(sequence: Any) -> str:
    """The layers of a sequence in their order, by their classes."""
    return " ".join(type(layer).__name__ for layer in sequence.children())


def with_gradient(module: Any) -> str:
    """The parts of a module that have parameters, and how many of those parameters have a gradient."""
    found = []
    for name, part in module.named_children():
        held = list(part.parameters())
        if held:
            reached = [one for one in held if one.grad is not None]
            share = "all" if len(reached) == len(held) else "some" if reached else "none"
            found.append(f"{name}: {share}")
    return ", ".join(found)


def frozen(module: Any) -> str:
    """Whether the parameters of a module are trained."""
    flags = {one.requires_grad for one in module.parameters()}
    return {frozenset(): "nothing", frozenset({True}): "trained", frozenset({False}): "frozen"}.get(
        frozenset(flags), "trained in part"
    )


def some(value: Any, *shape: int) -> Any:
    """A tensor; where a model says no more than that there is data, any will do."""
    return value if isinstance(value, torch.Tensor) else torch.zeros(*shape)
