"""Runs an example on real torch and tells what torch did, line by line."""

from __future__ import annotations

import contextlib
import io
import random
import sys
import traceback
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from tests.rules.pages import Claim


@dataclass(frozen=True, slots=True)
class Said:
    """What torch said on a line of the example: `kind` is raises or warns."""

    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind}: {self.text.splitlines()[0]}"


def run(path: str, text: str) -> list[Said]:
    """Everything torch said while the example ran, from the same starting state as every other example."""
    said: list[Said] = []
    with fresh_torch(), silenced(), heard_warnings(path, said):
        module = types.ModuleType("__main__")
        try:
            with as_main(module):
                exec(compile(text, path, "exec"), module.__dict__)
        except Exception as problem:
            own = [entry for entry in traceback.extract_tb(problem.__traceback__) if entry.filename == path]
            line = own[-1].lineno if own and own[-1].lineno else 0
            said.append(Said(line, "raises", f"{type(problem).__name__}: {problem}"))
    return said


def disagreements(claims: list[Claim], said: list[Said]) -> list[str]:
    """Claims that torch did not keep, and words of torch that no claim announced."""
    unkept = [
        claim
        for claim in claims
        if not any(
            claim.line == word.line and claim.kind == word.kind and claim.text in word.text for word in said
        )
    ]
    unannounced = [
        word
        for word in said
        if not any(
            claim.line == word.line and claim.kind == word.kind and claim.text in word.text
            for claim in claims
        )
    ]
    return [f"torch does not: {claim}" for claim in unkept] + [f"torch says: {word}" for word in unannounced]


@contextlib.contextmanager
def fresh_torch() -> Iterator[None]:
    """Grad mode, default type and random numbers as at the start of a program, before and after."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    _reset()
    try:
        yield
    finally:
        _reset()
        torch.set_num_threads(threads)


def _reset() -> None:
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    random.seed(0)


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()):
        yield


@contextlib.contextmanager
def as_main(module: types.ModuleType) -> Iterator[None]:
    """The example is the main module, as it is when a user runs it: classes and copies look themselves up there."""
    before = sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        yield
    finally:
        sys.modules["__main__"] = before


@contextlib.contextmanager
def heard_warnings(path: str, said: list[Said]) -> Iterator[None]:
    """Warnings, each on the innermost line of the example that led to it; torch repeats those it gives only once."""
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)

    def hear(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        frame = sys._getframe()
        while frame.f_back is not None and frame.f_code.co_filename != path:
            frame = frame.f_back
        line = frame.f_lineno if frame.f_code.co_filename == path else 0
        said.append(Said(line, "warns", f"{category.__name__}: {message}"))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.showwarning = hear
            yield
    finally:
        torch.set_warn_always(always)
