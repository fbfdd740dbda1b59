"""What a program applies, and what backward has left without a gradient in it, where no optimizer steps."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook


class AppliedModules:
    """The modules that were applied with grad mode on, until `stop`."""

    def __init__(self) -> None:
        self._called: dict[int, torch.nn.Module] = {}

        def note(module: torch.nn.Module, given: Any) -> None:
            if torch.is_grad_enabled():
                self._called.setdefault(id(module), module)

        self._handle = register_module_forward_pre_hook(note)

    def without_gradient(self) -> list[str]:
        """The parameters without a gradient, in modules of which backward has reached others."""
        inner = {
            id(part) for module in self._called.values() for part in module.modules() if part is not module
        }
        found = []
        for module in (each for key, each in self._called.items() if key not in inner):
            wanted = [(name, each) for name, each in module.named_parameters() if each.requires_grad]
            if any(each.grad is not None for _, each in wanted):
                found += [
                    f"{type(module).__name__}.{name}: backward left it without a gradient"
                    for name, each in wanted
                    if each.grad is None
                ]
        return found

    def stop(self) -> None:
        self._handle.remove()
