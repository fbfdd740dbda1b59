"""What a write in place makes of the numbers it finds: the same ones, scaled ones, ones shifted by a constant, or sunk ones.

`add_` of what no leaf had a part in leaves the gradient of the old value exact, a write of the same numbers leaves all as it
was, an operator whose backward looks at signs alone does not feel a factor above zero, and a softmax passes no gradient on to
elements that were filled with a number far below the others.
"""

from __future__ import annotations

from typing import Any

import torch

SHIFTS = frozenset(("add_", "sub_"))
SCALES = frozenset(("mul_", "div_", "pow_"))
FILLS = {"fill_": 1, "copy_": 1, "masked_fill_": 2, "index_put_": 2, "index_fill_": 3}
"""Operators that fill elements with one number, and which of their arguments it is."""
SUNK = 1e4
LARGEST_COMPARED = 1 << 16
"""The numbers of larger tensors are not compared: a program would feel the copies."""
NEEDS_ONLY_SIGN = frozenset(("ReluBackward0", "LeakyReluBackward0", "AbsBackward0"))
"""Nodes whose backward looks at the sign of what was saved, and at nothing else of it."""


class Change:
    """What one write did to its tensor.  `kind` is none, shifted, scaled, sunk, or empty where nothing is known."""

    __slots__ = ("_before", "kind")

    def __init__(self, kind: str = "") -> None:
        self.kind = kind
        self._before: torch.Tensor | None = None

    def remember(self, tensor: torch.Tensor) -> None:
        """Keeps the numbers until the write is over."""
        if not self.kind and tensor.numel() <= LARGEST_COMPARED and _has_values(tensor):
            self._before = tensor.detach().clone()

    def settle(self, tensor: torch.Tensor) -> None:
        """The write is over: it changed nothing if every number is the one it was."""
        before, self._before = self._before, None
        if before is not None and before.shape == tensor.shape and torch.equal(before, tensor.detach()):
            self.kind = "none"


def change_of(operator: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Change:
    """What can be said of a write by its operator and its arguments."""
    name = operator.rpartition("::")[2].partition(".")[0]
    if name in FILLS:
        place = FILLS[name]
        filler = _number(args[place]) if len(args) > place else None
        return Change("sunk" if filler is not None and abs(filler) >= SUNK else "")
    if name not in SHIFTS and name not in SCALES:
        return Change()
    other = _number(args[1]) if len(args) > 1 else None
    if name in SHIFTS:
        return Change("none" if other == 0 else "shifted")
    if other is None or kwargs:
        return Change()
    return Change("none" if other == 1 else "scaled" if other > 0 and name != "pow_" else "")


def _number(value: Any) -> float | None:
    """A number, also where torch has made a tensor of it."""
    if isinstance(value, torch.Tensor):
        if value.dim() or value.requires_grad or value.is_complex() or not _has_values(value):
            return None
        return float(value.item())
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _has_values(tensor: torch.Tensor) -> bool:
    """Whether the numbers of a tensor can be looked at, here and at no cost."""
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == "cpu"
