"""Whether a change that torch did not notice has a part in the gradient: by what arrives at the nodes that meet it.

Where only zeros arrive it has none.  A node that saved the changed memory is also asked: its backward is computed once more
with other numbers in the changed elements, and what gives the same result each time does not look at them (`where` and masks).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from gradsight.agent.graph import Geometry, Node, covered, geometry_of, untracked

_LARGEST_TRIED = 1 << 16
_MAGNITUDES = (0.3, 2.5, 40.0)


class Arrival:
    """Listens at a node while a backward runs; `feels` may know that what has come does not meet the change."""

    def __init__(self, node: Node, feels: Callable[[tuple[Any, ...]], bool] | None = None) -> None:
        self.came = False
        self._feels = feels
        self._handle = node.register_prehook(self._note)

    def _note(self, gradients: tuple[Any, ...]) -> None:
        if not self.came:
            with untracked():
                came = any(is_felt(gradient) for gradient in gradients)
                self.came = came and (self._feels is None or self._feels(gradients))

    def end(self) -> None:
        self._handle.remove()


class Passage:
    """Listens behind a node, at the gradients that it hands on along some of its edges."""

    def __init__(self, node: Any, edges: dict[int, Callable[[Any], bool]]) -> None:
        self.came = False
        self._edges = edges
        self._handle = node.register_hook(self._note)

    def _note(self, handed_on: tuple[Any, ...], arrived: tuple[Any, ...]) -> None:
        if not self.came:
            with untracked():
                self.came = any(
                    is_felt(handed_on[edge]) and meets(handed_on[edge])
                    for edge, meets in self._edges.items()
                    if edge < len(handed_on)
                )

    def end(self) -> None:
        self._handle.remove()


def is_felt(gradient: Any) -> bool:
    """Whether a gradient is one, and has something other than zeros in it."""
    if not isinstance(gradient, torch.Tensor):
        return False
    try:
        return bool(gradient.count_nonzero())
    except Exception:
        # A tensor without data, as fake ones are: nothing speaks for a zero.
        return True


def meets(gradient: torch.Tensor, here: Geometry, written: Geometry) -> bool:
    """Whether the gradient of a tensor that lies here is not zero in an element that was written."""
    if tuple(gradient.shape) != here.shape or gradient.numel() > _LARGEST_TRIED:
        return True
    try:
        mask = covered(written, here)
        return mask is None or bool(gradient[mask.to(gradient.device)].count_nonzero())
    except Exception:
        return True


def looks_at(
    node: Any, gradients: Sequence[Any], saved: torch.Tensor, written: Iterable[Geometry | None]
) -> bool:
    """Whether what a node makes of these gradients depends on the written elements of what it saved.

    Called while the node is about to run, when it still has what it saved.  `.data` has a version counter of its own, so that
    torch does not notice the numbers that are tried here; they are put back.
    """
    if not saved.is_floating_point() or saved.numel() > _LARGEST_TRIED or saved.device.type != "cpu":
        return True
    if isinstance(node, torch.autograd.function.FunctionCtx):
        return True
    alias = saved.data
    try:
        mask = torch.zeros(alias.shape, dtype=torch.bool)
        for one in written:
            part = covered(one, geometry_of(alias)) if one is not None else None
            mask |= True if part is None else part
        before = alias.clone()
    except Exception:
        return True
    try:
        usual = _results(node(*gradients))
        return any(
            not _are_same(usual, _with_numbers(node, gradients, alias, torch.where(mask, other, before)))
            for other in _others(before)
        )
    except Exception:
        return True
    finally:
        alias.copy_(before)


def _others(before: torch.Tensor) -> Iterable[torch.Tensor]:
    """Numbers of either sign and of several magnitudes: thresholds lie between some of them.  No random state is touched."""
    yield -before
    signs = (torch.arange(before.numel()) % 2 * 2 - 1).reshape(before.shape).to(before.dtype)
    for magnitude in _MAGNITUDES:
        yield signs * magnitude
        yield -signs * magnitude


def _with_numbers(
    node: Any, gradients: Sequence[Any], alias: torch.Tensor, numbers: torch.Tensor
) -> list[torch.Tensor]:
    alias.copy_(numbers)
    return _results(node(*gradients))


def _results(handed_on: Any) -> list[torch.Tensor]:
    several = handed_on if isinstance(handed_on, (list, tuple)) else (handed_on,)
    return [each.clone() for each in several if isinstance(each, torch.Tensor)]


def _are_same(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return len(left) == len(right) and all(torch.equal(one, other) for one, other in zip(left, right))
