"""What this torch offers: the agent asks before it leans on anything that older releases do not have."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch

SAVED_DATA = "saved-data"
ENGINE_FUNCTION = "engine-function"


@dataclass(frozen=True)
class Features:
    """`saved_data`: graph nodes show what they saved; `engine_function`: Python calls the engine through a function."""

    saved_data: bool
    engine_function: bool


def detect(without: Collection[str] = ()) -> Features:
    """The features of the running torch, less those that the caller wants to do without."""
    return Features(
        saved_data=SAVED_DATA not in without and _shows_saved_data(),
        engine_function=ENGINE_FUNCTION not in without
        and hasattr(torch.autograd.graph, "_engine_run_backward"),
    )


def _shows_saved_data() -> bool:
    leaf = torch.ones(1, requires_grad=True)
    node = leaf.exp().grad_fn
    raw = getattr(node, "_raw_saved_result", None)
    return raw is not None and hasattr(raw, "data") and hasattr(raw, "unpack_hook")
