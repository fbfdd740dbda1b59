"""Torch as judge: a version is executed, and what it did is what its losses, gradients, steps and prints say."""

from __future__ import annotations

import builtins
import contextlib
import signal
import sys
import types
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradsight_dev.fuzz.families.script import MAIN, OTHER, Version

LIMIT = 10
"""Seconds after which a program is given up."""
Numbers = tuple[str, list[float]]


@dataclass(slots=True)
class Run:
    """What one version did."""

    error: str = ""
    seen: list[Numbers] = field(default_factory=list)


def run(version: Version) -> Run:
    """Execute one version in this process; its other file is a module while it runs."""
    import torch

    done = Run()
    torch.manual_seed(0)
    try:
        with _observed(done), _limited(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if OTHER in version.texts:
                sys.modules["helpers"] = _executed("helpers", version.texts[OTHER], OTHER, done)
            _executed("__main__", version.texts[MAIN], MAIN, done)
    except Exception as error:
        done.error = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    finally:
        sys.modules.pop("helpers", None)
        torch.set_grad_enabled(True)
    return done


def effect_of(hazard: Run, twin: Run) -> str:
    """What sets the first apart from the second: raises, differs, same; or what is wrong with the second."""
    if twin.error:
        return f"twin: {twin.error}"
    if hazard.error:
        return "raises"
    return "same" if _are_alike(hazard.seen, twin.seen) else "differs"


def _are_alike(first: Sequence[Numbers], second: Sequence[Numbers]) -> bool:
    return len(first) == len(second) and all(
        one[0] == other[0] and len(one[1]) == len(other[1]) and all(map(_is_close, one[1], other[1]))
        for one, other in zip(first, second)
    )


def _is_close(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= 1e-4 * max(abs(one), abs(other), 1e-3) or one != one != other


def _executed(name: str, text: str, path: str, done: Run) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__["print"] = lambda *values, **_: done.seen.append(("print", _numbers(values)))
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def _numbers(values: Sequence[Any]) -> list[float]:
    import torch

    numbers: list[float] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            numbers += value.detach().double().flatten().tolist()
        elif isinstance(value, (int, float)):
            numbers.append(float(value))
    return numbers


@contextlib.contextmanager
def _observed(done: Run) -> Iterator[None]:
    import torch
    from torch.optim import optimizer

    original = torch.autograd.backward
    running: list[Any] = []

    def backward(tensors: Any, *rest: Any, **named: Any) -> Any:
        # A reentrant checkpoint calls backward inside backward.
        if not running:
            done.seen.append(("loss", _numbers([tensors] if isinstance(tensors, torch.Tensor) else tensors)))
        running.append(tensors)
        try:
            return original(tensors, *rest, **named)
        finally:
            running.pop()

    def stepping(one: Any, *_: Any) -> None:
        held = [p for group in one.param_groups for p in group["params"]]
        done.seen.append(("grads", _numbers([p.grad for p in held if p.grad is not None])))

    def stepped(one: Any, *_: Any) -> None:
        done.seen.append(("held", _numbers([p for group in one.param_groups for p in group["params"]])))

    hooks = (
        optimizer.register_optimizer_step_pre_hook(stepping),
        optimizer.register_optimizer_step_post_hook(stepped),
    )
    torch.autograd.backward = backward
    try:
        yield
    finally:
        torch.autograd.backward = original
        for hook in hooks:
            hook.remove()


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise builtins.TimeoutError("too slow")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
