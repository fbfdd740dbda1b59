"""Watches every backward pass a program starts: its roots, its nodes, and which nodes it frees."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch.autograd import graph as autograd_graph

Node = Any
OnPass = Callable[[Sequence[torch.Tensor], bool, int], None]


@contextmanager
def watched_passes(path: str, before: OnPass, after: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Call `before(roots, keeps_graph, line)` ahead of each backward pass of the program at `path`, `after()` behind it."""
    plain = autograd_graph._engine_run_backward

    def watching(
        roots: Sequence[torch.Tensor], gradients: Any, keeps_graph: bool, *rest: Any, **options: Any
    ) -> Any:
        before(roots, bool(keeps_graph), program_line(path))
        result = plain(roots, gradients, keeps_graph, *rest, **options)
        after()
        return result

    torch.autograd._engine_run_backward = autograd_graph._engine_run_backward = watching
    try:
        yield
    finally:
        torch.autograd._engine_run_backward = autograd_graph._engine_run_backward = plain


def program_line(path: str) -> int:
    """The innermost line of the program that is running now."""
    return next(iter(program_stack(path)), 0)


def program_stack(path: str) -> list[int]:
    """The lines of the program that are running now, the innermost first."""
    lines = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == path:
            lines.append(frame.f_lineno)
        frame = frame.f_back
    return lines


def nodes_behind(roots: Sequence[torch.Tensor]) -> list[Node]:
    """Every node of the graph behind the roots."""
    seen: set[Node] = set()
    waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting.extend(following for following, _ in node.next_functions if following is not None)
    return list(seen)


def leaves_behind(roots: Sequence[torch.Tensor]) -> set[int]:
    """The identities of the leaves a backward pass from these roots would reach."""
    reached = {id(root) for root in roots if root.is_leaf and root.requires_grad}
    return reached | {id(node.variable) for node in nodes_behind(roots) if hasattr(node, "variable")}
