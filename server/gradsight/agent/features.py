"""What this torch offers: the agent asks before it leans on anything that older releases do not have."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

SAVED_DATA = "saved-data"
ENGINE_FUNCTION = "engine-function"


@dataclass(frozen=True)
class Features:
    """What a release of torch has.

    `saved_data`: graph nodes show what they saved; `engine_function`: Python calls the engine through a function;
    `grad_mode_is_heard`: a function mode is told when grad mode is switched.
    """

    saved_data: bool
    engine_function: bool
    grad_mode_is_heard: bool


def detect(without: Collection[str] = ()) -> Features:
    """The features of the running torch, less those that the caller wants to do without."""
    return Features(
        saved_data=SAVED_DATA not in without and _shows_saved_data(),
        engine_function=ENGINE_FUNCTION not in without
        and hasattr(torch.autograd.graph, "_engine_run_backward"),
        grad_mode_is_heard=_tells_of_grad_mode(),
    )


def _shows_saved_data() -> bool:
    leaf = torch.ones(1, requires_grad=True)
    node = leaf.exp().grad_fn
    raw = getattr(node, "_raw_saved_result", None)
    return raw is not None and hasattr(raw, "data") and hasattr(raw, "unpack_hook")


def _tells_of_grad_mode() -> bool:
    heard = []

    class FeatureMode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            heard.append(func)
            return func(*args, **(kwargs or {}))

    with FeatureMode(), torch.set_grad_enabled(torch.is_grad_enabled()):
        return bool(heard)
