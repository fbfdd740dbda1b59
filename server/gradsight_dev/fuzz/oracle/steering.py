"""Turns a program's unknown conditions either way, so that every path through it can be run.

A *script* is the list of answers; conditions beyond its end are answered with False and the answers given are returned, so
that the next script can be derived.  Three things are answered: `random.random()`, the length of `sys.argv`, and the truth
of a tensor asked in the program itself.  A tensor condition met again with the same value gets the same answer.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import torch

MOST_PATHS = 32


class TooManyPaths(Exception):
    """The program has more paths than are worth running."""


class Steering:
    """Answers for one run."""

    def __init__(self, text: str, path: str, script: tuple[bool, ...] = ()) -> None:
        self.path = path
        self.script = script
        self.answers: list[bool] = []
        self._arguments = "sys.argv" in text
        self._tensor_answers: dict[tuple[object, int, bool], bool] = {}

    def __enter__(self) -> Steering:
        self._argv, self._random, self._bool = sys.argv, random.random, torch.Tensor.__bool__
        if self._arguments:
            # None, a few (which `sys.argv[1:]` sees and `len(sys.argv) > 3` does not), or many.
            count = 0 if not self._answer() else 4 if self._answer() else 1
            sys.argv = ["program.py", *["value"] * count]
        random.random = lambda: 0.25 if self._answer() else 0.75
        torch.Tensor.__bool__ = self._truth_method()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.argv, random.random = self._argv, self._random
        torch.Tensor.__bool__ = self._bool

    def next_script(self) -> tuple[bool, ...] | None:
        """The next path in the tree of answers, or None when all were run."""
        answers = list(self.answers)
        while answers and answers[-1]:
            answers.pop()
        if not answers:
            return None
        answers[-1] = True
        return tuple(answers)

    def _answer(self) -> bool:
        position = len(self.answers)
        answer = self.script[position] if position < len(self.script) else False
        self.answers.append(answer)
        return answer

    def _truth_method(self) -> Any:
        plain = self._bool

        def truth(tensor: torch.Tensor) -> bool:
            value = bool(plain(tensor))
            frame = sys._getframe(1)
            if frame.f_code.co_filename != self.path:
                return value
            place = (frame.f_code, frame.f_lineno, value)
            if place not in self._tensor_answers:
                self._tensor_answers[place] = self._answer()
            return self._tensor_answers[place]

        return truth


def every_path(text: str, path: str) -> Iterator[Steering]:
    """A steering for each path; the caller runs the program inside it before asking for the next."""
    script: tuple[bool, ...] | None = ()
    count = 0
    while script is not None:
        count += 1
        if count > MOST_PATHS:
            raise TooManyPaths
        steering = Steering(text, path, script)
        yield steering
        script = steering.next_script()


@contextmanager
def quiet_torch() -> Iterator[None]:
    """torch as a program finds it, restored afterwards whatever the program did."""
    torch.manual_seed(0)
    try:
        yield
    finally:
        torch.set_grad_enabled(True)
