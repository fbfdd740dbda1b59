"""Which lines of a program have switched grad mode off, while it is off.

torch tells a function mode of every switch but those of inference mode, which is watched where it is entered and left.
Leaving a block restores what was before: a line stands for its block no longer than the block lasts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch

from gradsight_dev.fuzz.oracle.passes import program_stack

SWITCH = "_set_grad_enabled"
FRAMES_TO_EXIT = 6


class Switches:
    """The switches in force, each as the program's lines that led to it, the innermost first."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.innermost: set[int] = set()
        """The lines that ever switched off."""
        self._off: list[tuple[int, ...]] = []
        self._suspended: list[tuple[int, ...]] = []

    @property
    def lines(self) -> set[int]:
        """Every line to which the present mode is due; none while gradients are recorded."""
        return {line for stack in self._off for line in stack}

    def switched(self, enabled: bool) -> None:
        """Grad mode is about to be set."""
        if enabled:
            self._suspended, self._off = self._off, []
        elif not _is_leaving(sys._getframe(1)):
            self._enter()
        elif self._off:
            self._leave()
        else:
            self._off = self._suspended

    @contextmanager
    def watching_inference(self) -> Iterator[None]:
        """Note where inference mode is entered, and forget it where it is left."""
        mode: Any = torch.inference_mode
        enter, leave = mode.__enter__, mode.__exit__

        def entering(manager: Any) -> Any:
            if manager.mode:
                self._enter()
            return enter(manager)

        def leaving(manager: Any, *error: Any) -> Any:
            self._leave()
            return leave(manager, *error)

        mode.__enter__, mode.__exit__ = entering, leaving
        try:
            yield
        finally:
            mode.__enter__, mode.__exit__ = enter, leave

    def _enter(self) -> None:
        stack = tuple(program_stack(self.path))
        if stack:
            self._off.append(stack)
            self.innermost.add(stack[0])

    def _leave(self) -> None:
        stack = tuple(program_stack(self.path))
        self._off = [entered for entered in self._off if entered != stack]


def _is_leaving(frame: FrameType | None) -> bool:
    """Whether a block of torch's own managers ends."""
    for _ in range(FRAMES_TO_EXIT):
        if frame is None:
            return False
        if frame.f_code.co_name == "__exit__" and frame.f_code.co_filename.endswith("grad_mode.py"):
            return True
        frame = frame.f_back
    return False
