"""Whether a gradient that is not zero came to a node: only then does it matter what the node had saved."""

from __future__ import annotations

from typing import Any

import torch

from gradsight.agent.graph import Node, untracked


class Arrival:
    """Listens at a node while a backward runs."""

    def __init__(self, node: Node) -> None:
        self.came = False
        self._handle = node.register_prehook(self._note)

    def _note(self, gradients: tuple[Any, ...]) -> None:
        if not self.came:
            with untracked():
                self.came = any(_is_felt(gradient) for gradient in gradients)

    def end(self) -> None:
        self._handle.remove()


def _is_felt(gradient: Any) -> bool:
    if not isinstance(gradient, torch.Tensor):
        return False
    try:
        return bool(gradient.count_nonzero())
    except Exception:
        # A tensor without data, as fake ones are: nothing speaks for a zero.
        return True
