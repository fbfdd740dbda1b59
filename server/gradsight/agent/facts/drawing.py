"""Small tensors and calls drawn from torch's generator: the material of our own samples."""

from __future__ import annotations

from typing import Any

import torch

from gradsight.agent.facts.observe import CallTemplate

Calls = dict[str, list[CallTemplate]]


def real(*shape: int) -> torch.Tensor:
    """Positive numbers between 0.1 and 0.9."""
    return torch.rand(shape) * 0.8 + 0.1


def whole(limit: int, *shape: int) -> torch.Tensor:
    """Integers below a limit."""
    return torch.randint(0, limit, shape)


def mask(*shape: int) -> torch.Tensor:
    """Booleans, mixed."""
    flat = torch.arange(max(1, torch.Size(shape).numel())) % 2 == 0
    return flat.reshape(shape)


def call(*positional: Any, **keywords: Any) -> CallTemplate:
    return CallTemplate(positional, keywords)
